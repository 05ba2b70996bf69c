"""What installs and runs print when they fail, wording by wording: every one is known.

The first list is the one that guides, NCCL's troubleshooting page and public issues give for
distributed runs; the number is its number there. The others go by what prints the message.
"""

from __future__ import annotations

import pytest

from torchdoctor.reading.traceback import symptoms
from torchdoctor.tables import symptoms as table

SIGNATURES = {
    "1 unhandled cuda error": (
        "NCCL error in: ../torch/csrc/x.cpp:1333, unhandled cuda error, NCCL version 2.18.1",
        "nccl-error",
    ),
    "1 by name": ("ncclUnhandledCudaError: Call to CUDA function failed.", "nccl-error"),
    "2 unhandled system error": (
        "RuntimeError: NCCL Error 2: unhandled system error",
        "nccl-error",
    ),
    "3 invalid usage": ("ncclInvalidUsage: This usually reflects invalid usage", "nccl-error"),
    "4 internal error": ("ncclInternalError: Internal check failed.", "nccl-error"),
    "5 remote error": (
        "ncclRemoteError: A call failed possibly due to a remote process exiting prematurely.",
        "nccl-remote-error",
    ),
    "6 duplicate GPU": (
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000",
        "duplicate-gpu",
    ),
    "7 the same GPU": (
        "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1",
        "duplicate-gpu",
    ),
    "8 no interface": ("NCCL WARN Bootstrap : no socket interface found", "nccl-no-interface"),
    "9 address family": (
        "ncclSocketInit: connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6",
        "nccl-address-family",
    ),
    "10 no interface for data": ("NCCL WARN NET/Socket : no interface found", "nccl-no-interface"),
    "10 no IP": ("NCCL WARN NET/IB : No IP interface found.", "nccl-no-interface"),
    "11 identifier": ("NCCL WARN Invalid NCCL_COMM_ID, please use", "nccl-comm-id-invalid"),
    "12 closed": (
        "socketProgress: Connection closed by remote peer node2<5123>",
        "nccl-peer-closed",
    ),
    "12 broken pipe": ("Call to recv from 192.0.2.1<1> failed : Broken pipe", "nccl-peer-closed"),
    "13 refused": (
        "socketStartConnect: Connect to 192.0.2.1<1> failed : Connection refused",
        "nccl-connect-failed",
    ),
    "13 after retries": (
        "connect to 192.0.2.1<1> returned Connection timed out, exceeded error retry count",
        "nccl-connect-failed",
    ),
    "14 wrong peer": ("NCCL WARN Connected to a peer with wrong type 4 != 3", "nccl-wrong-peer"),
    "15 versions": (
        "Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21903",
        "nccl-versions-differ",
    ),
    "16 truncated": (
        "Message truncated : received 1024 bytes instead of 256",
        "nccl-message-truncated",
    ),
    "17 mismatch": (
        "collective mismatch error, local size 8 remote size 16",
        "nccl-collective-mismatch",
    ),
    "18 segment": (
        "Error: failed to extend /dev/shm/nccl-KQ to 9637892 bytes, error: No space left on device",
        "shm-no-space",
    ),
    "19 fallocate": (
        "NCCL WARN Call to posix_fallocate failed : No space left on device",
        "shm-no-space",
    ),
    "20 segment, other reason": (
        "Error while attaching to shared memory segment /dev/shm/nccl-x (size 1)",
        "shm-segment-failed",
    ),
    "21 hang": ("it works with NCCL_P2P_DISABLE=1", "p2p-off-helps"),
    "22 redirected": ("ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+", "acs-redirects"),
    "23 wrong data": ("# Out of bounds values : 12 FAILED", "p2p-data-wrong"),
    "24 fabric": ("Cuda failure 802 'system not yet initialized'", "cuda-system-not-ready"),
    "24 without the number": ("Cuda failure 'system not yet initialized'", "cuda-system-not-ready"),
    "25 NVLS": ("transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'", "nvls-failed"),
    "26 driver": (
        "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
        "cuda-driver-too-old",
    ),
    "27 no device": ("Cuda failure 'no CUDA-capable device is detected'", "cuda-no-device"),
    "27 no GPUs": (
        "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        "cuda-no-device",
    ),
    "28 ordinal": ("Cuda failure 101 'invalid device ordinal'", "cuda-invalid-device"),
    "29 memory": ("Cuda failure 2 'out of memory'", "cuda-out-of-memory"),
    "30 initialization": (
        "Cuda failure 3 'initialization error'",
        "cuda-initialization-error",
    ),
    "31 transport": (
        "No transport found for rank 0[1000] -> rank 1[2000]",
        "nccl-no-transport",
    ),
    "32 IPC": ("cudaIpcGetMemHandle failed : invalid argument", "nccl-ipc-failed"),
    "32 legacy IPC": ("Legacy IPC not supported on this platform", "nccl-ipc-failed"),
    "33 NVLink": ("P2P is disabled between NVLINK connected GPUs 1 and 0.", "nvlink-p2p-off"),
    "34 MIG": ("ncclInvalidUsage: This usually reflects invalid usage", "nccl-error"),
    "35 memlock": (
        "Call to ibv_create_cq failed with error Cannot allocate memory",
        "ib-memory-refused",
    ),
    "36 completion": (
        "NET/IB : Got completion from peer 192.0.2.2<1> with status=12 opcode=0 vendor err 129",
        "ib-completion-error",
    ),
    "37 OFI": ("NET/OFI Request completed with error. RC: 21", "net-plugin-failed"),
    "38 watchdog": (
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, "
            "Timeout(ms)=600000)"
        ),
        "watchdog-timeout",
    ),
    "39 stuck": ("ProcessGroupNCCL's watchdog got stuck for 480 seconds", "watchdog-stuck"),
    "39 heartbeat": ("Heartbeat monitor timed out! Process will be terminated", "watchdog-stuck"),
    "40 taken down": (
        "Some NCCL operations have failed or timed out. we are taking the entire process down.",
        "watchdog-took-down",
    ),
    "41 unique id": (
        (
            "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
            "key-value store by key '0', but store->get('0') got error: wait timeout"
        ),
        "first-collective-missed",
    ),
    "42 barrier": (
        "using GPU 1 to perform barrier as devices used by this process are currently unknown",
        "barrier-device-unknown",
    ),
    "43 not destroyed": (
        "NCCL communicator hasn't been destroyed",
        "process-group-not-destroyed",
    ),
    "44 symbol": (
        "ImportError: /v/libtorch_cuda.so: undefined symbol: ncclCommResume",
        "undefined-symbol",
    ),
    "45 backend": ("Distributed package doesn't have NCCL built in", "backend-not-built"),
    "46 port": (
        (
            "The server socket has failed to listen on any local network address. port: 29500, "
            "useIpv6: false, code: -98, name: EADDRINUSE"
        ),
        "address-in-use",
    ),
    "47 client": (
        "The client socket has timed out after 60000ms while trying to connect to (h, 29500).",
        "client-timed-out",
    ),
    "48 rendezvous": ("RendezvousConnectionError: The connection failed", "rendezvous-failed"),
    "49 full mesh": (
        "Gloo connectFullMesh failed with [x] Connection refused, remote=[127.0.1.1]:1",
        "gloo-connect-failed",
    ),
    "50 address": ("Unable to find address for: ^lo", "gloo-interface-unknown"),
    "51 name": ("Unable to resolve hostname to a (local) address.", "hostname-unresolved"),
    "52 IPv6": (
        "(errno: 97 - Address family not supported by protocol)",
        "address-family-unsupported",
    ),
    "53 size": ("op.preamble.length <= op.nbytes. 1000 vs 996", "gloo-size-mismatch"),
    "53 fingerprint": ("Detected mismatch between collectives on ranks.", "collective-mismatch"),
    "54 closed": ("[gloo/transport/tcp/pair.cc] Connection closed by peer", "gloo-peer-closed"),
    "54 waiting": ("Timed out waiting 1800000ms for recv operation", "gloo-timed-out"),
    "55 bus error": (
        "DataLoader worker (pid 7) is killed by signal: Bus error.",
        "loader-bus-error",
    ),
    "55 shm": (
        "unable to allocate shared memory(shm) for file </torch_1_2>: No space left on device (28)",
        "shm-no-space",
    ),
    "56 killed": ("DataLoader worker (pid 7) is killed by signal: Killed.", "loader-killed"),
    "56 exit code": ("  exitcode  : -9 (pid: 14750)", "exit-code"),
    "57 children": ("ChildFailedError:", "torchrun-failed"),
    "58 stopped": ("  exitcode  : -15 (pid: 14750)", "exit-code"),
    "59 aborted": ("  exitcode  : -6 (pid: 14750)", "exit-code"),
    "59 segmentation fault": ("  exitcode  : -11 (pid: 14750)", "exit-code"),
    "60 libuv": (
        "use_libuv was requested but PyTorch was built without libuv support",
        "libuv-missing",
    ),
    "61 Docker's name": (
        "failed to connect to [kubernetes.docker.internal]:29500 (system error: 10049 - x).",
        "address-not-valid-here",
    ),
    "62 reduction": (
        "Expected to have finished reduction in the prior iteration before starting a new one.",
        "unused-parameters",
    ),
}
ECHOES = {"5", "12", "38", "39", "40", "52", "54", "57", "61"}
"""What only tells of another process, or is said before it goes on."""


@pytest.mark.parametrize("number", SIGNATURES)
def test_the_wording_is_known(number: str) -> None:
    text, name = SIGNATURES[number]
    assert name in [symptom.name for symptom in symptoms(text, "log")]


def test_none_of_the_62_is_left_out() -> None:
    assert {int(number.split()[0]) for number in SIGNATURES} == set(range(1, 63))


def test_what_is_never_the_cause_is_an_echo_and_nothing_else_is() -> None:
    said = {number.split()[0] for number, (_, name) in SIGNATURES.items() if name in table.echoes()}
    assert said == ECHOES


NUMBERS = {
    "35": "cuda-driver-too-old",
    "100": "cuda-no-device",
    "101": "cuda-invalid-device",
    "209": "no-kernel-image",
    "222": "unsupported-ptx",
    "304": "cuda-call-failed-in-os",
    "700": "gpu-hardware-error",
    "710": "cuda-device-assert",
    "801": "cuda-not-supported",
    "802": "cuda-system-not-ready",
    "803": "cuda-driver-mismatch",
    "804": "cuda-compat-not-supported",
    "999": "cuda-unknown-error",
}


@pytest.mark.parametrize(("number", "name"), NUMBERS.items())
def test_an_error_of_cuda_is_known_by_its_number_in_any_language(number: str, name: str) -> None:
    text = f"Unexpected error from cudaGetDeviceCount(). Error {number}: 出错了"
    assert [(s.name, s.values.get("code")) for s in symptoms(text, "log")] == [(name, number)]


BY_NAME = {
    "cudaErrorNoKernelImageForDevice": "no-kernel-image",
    "cudaErrorUnknown": "cuda-unknown-error",
    "CUDA_ERROR_NO_DEVICE": "cuda-no-device",
    "CUDA driver version is insufficient for CUDA runtime version": "cuda-driver-too-old",
    "forward compatibility was attempted on non supported HW": "cuda-compat-not-supported",
    "system has unsupported display driver / cuda driver combination": "cuda-driver-mismatch",
}


@pytest.mark.parametrize(("words", "name"), BY_NAME.items())
def test_an_error_of_cuda_is_known_by_its_name(words: str, name: str) -> None:
    found = symptoms(f"RuntimeError: CUDA error: {words}", "log")
    assert name in [symptom.name for symptom in found]


PRINTED = {
    # pip, uv and conda
    "pip: no matching distribution": (
        "Could not find a version that satisfies the requirement torch (from versions: none)",
        "no-wheel-found",
    ),
    "pip: left over": (
        "WARNING: Ignoring invalid distribution ~orch (/v/lib/python3.11/site-packages)",
        "python-distribution-invalid",
    ),
    "pip: incompatible": (
        "torchaudio 2.0.2 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible.",
        "pip-conflict",
    ),
    "pip: no solution": (
        "ERROR: ResolutionImpossible: for help visit https://pip.example.org",
        "pip-resolution-impossible",
    ),
    "pip: Bad CRC": ("zipfile.BadZipFile: Bad CRC-32 for file 'torch/lib/x.so'", "archive-damaged"),
    "pip: path too long": (
        (
            "HINT: This error might have occurred since this system does not have Windows Long "
            "Path support enabled."
        ),
        "path-too-long",
    ),
    "pip: another Python": (
        "ERROR: Package 'torchvision' requires a different Python: 3.7.9 not in '>=3.8'",
        "pip-python-refused",
    ),
    "pip: managed elsewhere": ("error: externally-managed-environment", "externally-managed"),
    "pip: disk": ("OSError: [Errno 28] No space left on device", "disk-full"),
    "uv: no version": (
        "Because there is no version of torch==9.9 and you require torch==9.9, we can conclude",
        "no-wheel-found",
    ),
    "uv: no wheel": (
        "torch==2.5.1 has no wheels with a matching Python ABI tag",
        "wheel-tags-unmatched",
    ),
    "conda: no solution": (
        "LibMambaUnsatisfiableError: Encountered problems while solving:",
        "conda-unsatisfiable",
    ),
    "conda: no GPU here": (
        "  - feature:/linux-64::__cuda==11.8=0\nnothing provides __cuda needed by pytorch-2.5.1",
        "cuda-virtual-package",
    ),
    # cuDNN, cuBLAS, NVRTC, Triton
    "cuDNN: version": (
        (
            "cuDNN version incompatibility: PyTorch was compiled  against (8, 3, 2) but found "
            "runtime version (8, 0, 3)."
        ),
        "cudnn-mismatch",
    ),
    "cuDNN: status": (
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "cuda-library-error",
    ),
    "cuBLAS: status": (
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "cuda-library-error",
    ),
    "NVRTC": ("nvrtc: error: invalid value for --gpu-architecture (-arch)", "nvrtc-failed"),
    "Triton: ptxas": (
        "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
        "ptxas-too-old",
    ),
    "Triton: absent": ("Cannot find a working triton installation.", "triton-not-found"),
    # ROCm, MPS
    "HIP: function": (
        "RuntimeError: HIP error: invalid device function",
        "invalid-device-function",
    ),
    "HIP: binary": (
        "hipErrorNoBinaryForGpu: Couldn't find binary for current devices",
        "hip-no-binary",
    ),
    "HIP: other": ("hipErrorLaunchFailure", "hip-error"),
    "HIP: device": ("RuntimeError: No HIP GPUs are available", "hip-no-device"),
    "MPS: memory": ("MPS backend out of memory (MPS allocated: 9.05 GB)", "mps-out-of-memory"),
    "MPS: operator": (
        "The operator 'aten::_fft_r2c' is not currently implemented for the MPS device.",
        "mps-operator-missing",
    ),
    # DataLoader, OpenMP, the loaders of Linux and macOS
    "DataLoader: killed": (
        "DataLoader worker (pid 7) is killed by signal: Killed.",
        "loader-killed",
    ),
    "DataLoader: exited": ("DataLoader worker (pid(s) 7) exited unexpectedly", "loader-killed"),
    "OMP 15": (
        "OMP: Error #15: Initializing libiomp5md.dll, but found libomp.dll already initialized.",
        "openmp-twice",
    ),
    "glibc": (
        "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by /v/x.so)",
        "symbol-version-missing",
    ),
    "libstdc++": (
        "/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /v/x.so)",
        "symbol-version-missing",
    ),
    "dyld: library": (
        (
            "Library not loaded: @rpath/libomp.dylib\n  Referenced from: /v/libtorch_cpu.dylib\n"
            "  Reason: image not found"
        ),
        "dyld-library-missing",
    ),
    "dyld: symbol": (
        (
            "Symbol not found: ___addtf3\n  Referenced from: /v/libquadmath.0.dylib\n"
            "  Expected in: /usr/lib/libSystem.B.dylib"
        ),
        "dyld-symbol-missing",
    ),
}


@pytest.mark.parametrize("what", PRINTED)
def test_what_each_program_prints_is_known(what: str) -> None:
    text, name = PRINTED[what]
    assert name in [symptom.name for symptom in symptoms(text, "log")]


DLL_NUMBERS = ("5", "126", "127", "182", "193", "225", "998", "1114", "1455", "4551")


@pytest.mark.parametrize("number", DLL_NUMBERS)
def test_an_error_of_the_loader_of_windows_is_known_by_its_number(number: str) -> None:
    text = f'OSError: [WinError {number}] 出错了 Error loading "C:\\v\\torch\\lib\\c10.dll"'
    (found,) = (s for s in symptoms(text, "log") if s.name == "winerror-dll")
    assert (found.values["code"], found.values["file"]) == (number, "C:\\v\\torch\\lib\\c10.dll")
