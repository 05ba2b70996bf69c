"""Samples of the rows of symptoms_running.toml."""

from __future__ import annotations

from tests.tables.symptom_samples import Sample

SAMPLES = [
    Sample(
        "cuda-system-not-ready",
        "n1:1:2 [0] NCCL WARN Cuda failure 802 'system not yet initialized'",
        {"code": "802"},
        "NCCL INFO system not yet initialized, waiting",
    ),
    Sample(
        "cuda-invalid-device",
        "node1: Test CUDA failure common.cu:986 'invalid device ordinal'",
        {"code": "101"},
        "an invalid device ordinal was not given",
    ),
    Sample(
        "cuda-out-of-memory",
        "n1:1:2 [0] NCCL WARN Cuda failure 2 'out of memory'",
        {"code": "2"},
        "Cuda failure 3 'initialization error'",
    ),
    Sample(
        "cuda-initialization-error",
        "n1:1:2 [0] NCCL WARN Cuda failure 3 'initialization error'",
        {"code": "3"},
        "Cuda failure 2 'out of memory'",
    ),
    Sample(
        "cuda-no-device",
        "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        {},
        "ProcessGroupNCCL is only supported with GPUs",
    ),
    Sample(
        "nccl-remote-error",
        "ncclRemoteError: A call failed possibly due to a network error",
        {},
        "ncclSystemError: System call failed",
    ),
    Sample(
        "nccl-error",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed",
        {"kind": "SystemError"},
        "ncclSuccess",
    ),
    Sample(
        "nccl-error",
        "RuntimeError: NCCL Error 2: unhandled system error",
        {"kind": "unhandled system error"},
        "an unhandled system error of another library",
    ),
    Sample(
        "nccl-peer-closed",
        "misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer node2<51234>",
        {"peer": "node2<51234>"},
        "Connection closed by foreign host",
    ),
    Sample(
        "nccl-message-truncated",
        "NCCL WARN Message truncated : received 1024 bytes instead of 256",
        {"got": "1024", "wanted": "256"},
        "Message truncated",
    ),
    Sample(
        "nccl-collective-mismatch",
        "init.cc:1247 NCCL WARN Mismatched collective detected, please check",
        {},
        "Mismatched parentheses detected",
    ),
    Sample(
        "nccl-no-transport",
        "NCCL WARN No transport found for rank 0[1000] -> rank 1[2000]",
        {"first": "0", "second": "1"},
        "transport found for rank 0 -> rank 1",
    ),
    Sample(
        "nccl-ipc-failed",
        "NCCL WARN cudaIpcGetMemHandle failed : invalid argument",
        {},
        "cudaIpcGetMemHandle returned",
    ),
    Sample(
        "nvlink-p2p-off",
        "NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This should not "
        "be the case",
        {"first": "1", "second": "0"},
        "P2P is enabled between NVLINK connected GPUs 1 and 0",
    ),
    Sample(
        "nvls-failed",
        "transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'",
        {"code": "1"},
        "transport/p2p.cc:244 NCCL WARN Cuda failure 1 'invalid argument'",
    ),
    Sample(
        "duplicate-gpu",
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000",
        {"first": "1", "second": "0", "device": "18000"},
        "Duplicate GPU names detected",
    ),
    Sample(
        "duplicate-gpu",
        "NCCL WARN Multiple Ranks are using the same GPU/Partition. Set "
        "NCCL_MULTI_RANK_GPU_ENABLE=1",
        {},
        "Multiple Ranks are using GPUs",
    ),
    Sample(
        "nccl-versions-differ",
        "NCCL WARN Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21903",
        {"first": "0", "one": "22005", "second": "8", "other": "21903"},
        "NCCL version 2.20.5",
    ),
    Sample(
        "nccl-address-family",
        "ncclSocketInit: connecting to address with family 0 is neither AF_INET(2) nor "
        "AF_INET6(10)",
        {"family": "0"},
        "family 0 is neither AF_UNIX",
    ),
    Sample(
        "nccl-wrong-peer",
        "NCCL WARN socketProgressState: unexpected, wrong type 4 != 3",
        {},
        "wrong type of argument",
    ),
    Sample(
        "nccl-version-line",
        "NCCL version 2.21.5+cuda12.4",
        {"version": "2.21.5", "cuda": "12.4"},
        "NCCL version unknown",
    ),
    Sample(
        "nccl-package",
        "nvidia-nccl-cu12==2.20.5",
        {"cuda": "12", "version": "2.20.5"},
        "  requires nvidia-nccl-cu12==2.20.5",
    ),
    Sample(
        "nccl-no-interface",
        "bootstrap.cc:37 NCCL WARN Bootstrap : no socket interface found",
        {},
        "NCCL INFO Bootstrap : Using eth0",
    ),
    Sample(
        "nccl-comm-id-invalid",
        "NCCL WARN Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>",
        {},
        "NCCL_COMM_ID set by environment",
    ),
    Sample(
        "nccl-connect-failed",
        "NCCL WARN Net : Connect to 192.0.2.9<54263> failed : No route to host",
        {"peer": "192.0.2.9<54263>", "reason": "No route to host"},
        "curl: (7) Failed to connect to localhost port 80: Connection refused",
    ),
    Sample(
        "nccl-interface",
        "n1:1:1 [0] NCCL INFO Bootstrap : Using [0]eth0:192.0.2.1<0>",
        {"interface": "eth0", "address": "192.0.2.1"},
        "NCCL INFO Bootstrap : Using nothing",
    ),
    Sample(
        "shm-no-space",
        "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
        {},
        "OSError: [Errno 28] No space left on device: '/data/x'",
    ),
    Sample(
        "shm-segment-failed",
        "NCCL WARN Error while creating shared memory segment nccl-shm-recv-1-0-1-3 (size 9637888)",
        {"what": "creating", "segment": "nccl-shm-recv-1-0-1-3", "size": "9637888"},
        "a shared memory segment was made",
    ),
    Sample(
        "loader-bus-error",
        "RuntimeError: DataLoader worker (pid 37) is killed by signal: Bus error.",
        {"pid": "37"},
        "Fatal Python error: Bus error",
    ),
    Sample(
        "p2p-off-helps",
        "$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2    # finishes",
        {},
        "$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2    # hangs",
    ),
    Sample(
        "p2p-off-helps",
        "it works with NCCL_P2P_DISABLE=1",
        {},
        "it hangs with NCCL_P2P_DISABLE=1",
    ),
    Sample(
        "p2p-off-run",
        "$ NCCL_P2P_DISABLE=1 CUDA_VISIBLE_DEVICES=2,3 ./all_reduce_perf",
        {},
        "NCCL_P2P_DISABLE=1",
    ),
    Sample(
        "p2p-in-use",
        "node1:71:92 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
        {"how": "IPC"},
        "node1:71:92 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
    ),
    Sample(
        "hang-told",
        "the run hangs after init",
        {},
        "the pictures change",
    ),
    Sample(
        "acs-redirects",
        "ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+",
        {},
        "ACSCap: SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+",
    ),
    Sample(
        "acs-off",
        "ACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-",
        {},
        "ACSCtl: SrcValid+ TransBlk- ReqRedir+",
    ),
    Sample(
        "geforce-named",
        "4xRTX 4090, no NVLink",
        {"gpu": "4090"},
        "step 4090.5",
    ),
    Sample(
        "iommu-on",
        "[    0.000000] DMAR: IOMMU enabled",
        {},
        "[    0.000000] DMAR: IOMMU disabled",
    ),
    Sample(
        "driver-works",
        "driver 535.113.01: works",
        {"release": "535.113.01"},
        "driver 545.23.08: hangs",
    ),
    Sample(
        "driver-fails",
        "driver 545.23.08: hangs",
        {"release": "545.23.08"},
        "driver 535.113.01: works",
    ),
    Sample(
        "p2p-data-wrong",
        "# Out of bounds values : 12 FAILED",
        {"count": "12"},
        "# Out of bounds values : 0 OK",
    ),
    Sample(
        "p2p-not-supported",
        "RuntimeError: CUDA error: peer access is not supported between these two devices",
        {"code": "217"},
        "CUDA error: peer access has already been enabled",
    ),
    Sample(
        "p2p-not-supported",
        "NotImplementedError: Using RTX 4000 series doesn't support faster communication "
        "broadband via P2P or IB.",
        {},
        "RTX 4000 series support",
    ),
    Sample(
        "ib-memory-refused",
        "misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        {"call": "reg_mr"},
        "Call to ibv_open_device failed",
    ),
    Sample(
        "ib-completion-error",
        "NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129",
        {"status": "12", "vendor": "129"},
        "NET/IB : Got completion",
    ),
    Sample(
        "ib-queue-pair-failed",
        "NCCL WARN Call to ibv_modify_qp failed with error No data available errno 61",
        {"reason": "No data available errno 61"},
        "ibv_modify_qp returned 0",
    ),
    Sample(
        "ib-in-use",
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:192.0.2.10<0>",
        {"device": "mlx5_0", "kind": "RoCE"},
        "NCCL INFO NET/IB : No device found.",
    ),
    Sample(
        "net-plugin-failed",
        "NCCL WARN NET/OFI Request completed with error. RC: 21. Error: unknown error",
        {"reason": "completed with error"},
        "NCCL INFO NET/OFI Selected Provider is efa",
    ),
    Sample(
        "net-plugin",
        "NCCL INFO NET/OFI Using aws-ofi-nccl 1.3.0aws",
        {"version": "1.3.0aws"},
        "aws-ofi-nccl is not used",
    ),
    Sample(
        "net-plugin-symbol-missing",
        "NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v6 symbol.",
        {},
        "NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.",
    ),
    Sample(
        "watchdog-timeout",
        "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=98, "
        "NumelOut=98, Timeout(ms)=600000) ran for 600020 milliseconds",
        {"seq": "808", "op": "ALLREDUCE", "numel": "98", "timeout": "600000", "rank": "1"},
        "the watchdog of the server timed out",
    ),
    Sample(
        "watchdog-progress",
        "[PG 1 Rank 3] detected by watchdog at work: 1580, last enqueued NCCL work: 1582, "
        "last completed NCCL work: 1579.",
        {"enqueued": "1582", "completed": "1579", "rank": "3"},
        "last enqueued NCCL work: none",
    ),
    Sample(
        "watchdog-stuck",
        "[Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
        {"seconds": "480", "rank": "0"},
        "the watchdog started",
    ),
    Sample(
        "watchdog-took-down",
        "[Rank 4] To avoid data inconsistency, we are taking the entire process down.",
        {"rank": "4"},
        "taking the server down",
    ),
    Sample(
        "first-collective-missed",
        "DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId "
        "from [0] via c10d key-value store by key '0', but store->get('0') got error: "
        "Socket Timeout",
        {"rank": "3", "root": "0", "reason": "Socket Timeout"},
        "[3] is setting up NCCL communicator",
    ),
    Sample(
        "barrier-device-unknown",
        "[W] [Rank 1]  using GPU 1 to perform barrier as devices used by this process are "
        "currently unknown.",
        {"device": "1", "rank": "1"},
        "using GPU 1 to perform barrier",
    ),
    Sample(
        "process-group-not-destroyed",
        "Warning: WARNING: destroy_process_group() was not called before program exit",
        {},
        "destroy_process_group() was called",
    ),
    Sample(
        "collective-mismatch",
        "Detected mismatch between collectives on ranks. Rank 1 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[1])",
        {"first": "1", "op": "ALLREDUCE"},
        "Detected mismatch between files",
    ),
    Sample(
        "gloo-size-mismatch",
        "[enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 1000 vs 996",
        {"got": "1000", "wanted": "996"},
        "op.preamble.length",
    ),
    Sample(
        "uneven-batches",
        "rank 1: len(dataloader)=4260",
        {"rank": "1", "count": "4260"},
        "len(dataloader)=4260",
    ),
    Sample(
        "uneven-join",
        "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across "
        "all ranks.",
        {},
        "a rank exhausted its patience",
    ),
    Sample(
        "work-in-progress",
        "Preparing test set...:  36%|###5     | 24/67 [23:16<30:00, 41.87s/it]",
        {
            "what": "Preparing test set",
            "percent": "36",
            "done": "24",
            "all": "67",
            "spent": "23:16",
        },
        "24 of 67 done",
    ),
    Sample(
        "unused-parameters",
        "RuntimeError: Expected to have finished reduction in the prior iteration before "
        "starting a new one.",
        {},
        "Expected to have finished",
    ),
    Sample(
        "parameter-marked-twice",
        "RuntimeError: Expected to mark a variable ready only once.",
        {},
        "mark a variable as ready",
    ),
    Sample(
        "address-in-use",
        "DistNetworkError: The server socket has failed to listen on any local network "
        "address. port: 29501, useIpv6: false, code: -98, name: EADDRINUSE, message: "
        "address already in use",
        {"port": "29501"},
        "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): "
        "address already in use",
    ),
    Sample(
        "client-timed-out",
        "The client socket has timed out after 60000ms while trying to connect to "
        "(192.0.2.20, 29500).",
        {"ms": "60000", "host": "192.0.2.20", "port": "29500"},
        "the client timed out",
    ),
    Sample(
        "client-timed-out",
        "[c10d] TCP client failed to connect/validate to host 192.0.2.20:29500 - timed out "
        "(try=1, timeout=60000ms)",
        {"host": "192.0.2.20", "port": "29500"},
        "TCP client failed to connect/validate to host 192.0.2.20:29500 - retrying",
    ),
    Sample(
        "store-timed-out",
        "DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.",
        {"seconds": "901", "here": "1", "all": "2"},
        "Timed out after 901 seconds",
    ),
    Sample(
        "rendezvous-failed",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        {"kind": "Timeout"},
        "the rendezvous failed",
    ),
    Sample(
        "environment-incomplete",
        "environment variable RANK expected, but not set",
        {"variable": "RANK"},
        "environment variable HOME expected, but not set",
    ),
    Sample(
        "environment-incomplete",
        "KeyError: 'LOCAL_RANK'",
        {"variable": "LOCAL_RANK"},
        "KeyError: 'labels'",
    ),
    Sample(
        "store-connection-lost",
        "[rank6]:[W729 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=76, "
        "addr=[localhost]:60950, remote=[localhost]:29500): Connection reset by peer",
        {"reason": "Connection reset by peer", "rank": "6"},
        "failed on SocketImpl",
    ),
    Sample(
        "local-address",
        "$ hostname -I\n192.0.2.77",
        {"addresses": "192.0.2.77"},
        "$ hostname\nnode1",
    ),
    Sample(
        "launch-line",
        "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=1 --master_addr=192.0.2.10 train.py",
        {
            "launcher": "torchrun",
            "nproc": "8",
            "nnodes": "2",
            "node_rank": "1",
            "master": "192.0.2.10",
        },
        "torchrun train.py",
    ),
    Sample(
        "launch-place",
        "user@gpu1:~/x$ torchrun --nnodes=2 --node_rank=0 --master_addr=gpu1 train.py",
        {"node": "user@gpu1"},
        "$ torchrun --nnodes=2 --node_rank=0 --master_addr=gpu1 train.py",
    ),
    Sample(
        "launch-place",
        "# on the second node:\n$ torchrun --nnodes=2 --node_rank=0 --master_addr=gpu1 train.py",
        {"node": "on the second node"},
        "# training\n$ torchrun --nnodes=2 --node_rank=0 --master_addr=gpu1 train.py",
    ),
    Sample(
        "client-timed-out",
        "RuntimeError: connect() timed out. Original timeout was 1800000 ms.",
        {"ms": "1800000"},
        "connect() returned",
    ),
    Sample(
        "store-connection-lost",
        "RuntimeError: Connection reset by peer",
        {"reason": "Connection reset by peer"},
        "curl: (56) Recv failure: Connection reset by peer",
    ),
    Sample(
        "launch-size",
        "nnodes=2 nproc_per_node=8",
        {"nnodes": "2", "nproc": "8"},
        "--nnodes=2",
    ),
    Sample(
        "local-rank-refused",
        "train.py: error: unrecognized arguments: --local-rank=0",
        {"argument": "--local-rank"},
        "train.py: error: unrecognized arguments: --lr=0",
    ),
    Sample(
        "local-rank-refused",
        "train.py: error: the following arguments are required: --local_rank",
        {"argument": "--local_rank"},
        "the following arguments are required: --data",
    ),
    Sample(
        "libuv-missing",
        "use_libuv was requested but PyTorch was built without libuv support",
        {},
        "libuv.so.1: cannot open shared object file",
    ),
    Sample(
        "backend-not-built",
        "RuntimeError: Distributed package doesn't have NCCL built in",
        {"backend": "NCCL"},
        "Distributed package has NCCL built in",
    ),
    Sample(
        "gloo-interface-unknown",
        "[enforce fail at device.cc:84] ifa != nullptr. Unable to find address for: ^lo",
        {"interface": "^lo"},
        "Unable to find the address",
    ),
    Sample(
        "gloo-connect-failed",
        "Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: "
        "Connection refused, remote=[127.0.0.1]:14215 (rank=8, size=16, local=[127.0.0.1])",
        {"remote": "127.0.0.1", "rank": "8", "size": "16"},
        "connectFullMesh succeeded, remote=[127.0.0.1]",
    ),
    Sample(
        "hostname-unresolved",
        "Warning: Unable to resolve hostname to a (local) address. Using the loopback "
        "address as fallback.",
        {},
        "Unable to resolve host example.org",
    ),
    Sample(
        "hosts-loopback",
        "127.0.1.1       node-0",
        {"name": "node-0"},
        "127.0.0.1 localhost",
    ),
    Sample(
        "address-family-unsupported",
        "(errno: 97 - Address family not supported by protocol)",
        {},
        "(errno: 98 - Address already in use)",
    ),
    Sample(
        "address-not-valid-here",
        "The client socket has failed to connect to [kubernetes.docker.internal]:29500 "
        "(system error: 10049 - The requested address is not valid in its context.).",
        {"host": "kubernetes.docker.internal", "port": "29500"},
        "(system error: 10061)",
    ),
    Sample(
        "gloo-peer-closed",
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [192.0.2.1]:4711",
        {},
        "Connection closed by peer",
    ),
    Sample(
        "gloo-timed-out",
        "RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
        "operation to complete",
        {"ms": "1800000", "what": "recv"},
        "Timed out waiting for a lock",
    ),
    Sample(
        "monitored-barrier-failed",
        "RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 2000 ms",
        {"missing": "2"},
        "all ranks passed monitoredBarrier",
    ),
    Sample(
        "mesh-proxy",
        "containers: pytorch, istio-proxy",
        {},
        'sidecar.istio.io/inject: "false"',
    ),
    Sample(
        "torchrun-root-cause",
        "Root Cause (first observed failure):\n[0]:\n  time      : 2025-05-21_15:43:03\n  "
        "host      : worker-0\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: "
        "14750)",
        {
            "time": "2025-05-21_15:43:03",
            "host": "worker-0",
            "rank": "3",
            "local_rank": "1",
            "exitcode": "-9",
        },
        "Root Cause (first observed failure): unknown",
    ),
    Sample(
        "torchrun-exit",
        "failed (exitcode: 1) local_rank: 2 (pid: 903) of binary: /usr/bin/python",
        {"exitcode": "1", "local_rank": "2"},
        "failed with exit code 1",
    ),
    Sample(
        "torchrun-failed",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        {},
        "a child failed",
    ),
    Sample(
        "torchrun-stopped-rank",
        "Sending process 901 closing signal SIGTERM",
        {},
        "Sending process 901 to sleep",
    ),
    Sample(
        "rank-exception",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory.",
        {"rank": "3", "type": "torch.OutOfMemoryError", "message": "CUDA out of memory."},
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp",
    ),
    Sample(
        "loader-killed",
        "RuntimeError: DataLoader worker (pid 19597) is killed by signal: Killed.",
        {"pid": "19597", "how": "is killed by signal: Killed"},
        "RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error.",
    ),
    Sample(
        "loader-crashed",
        "RuntimeError: DataLoader worker (pid 19597) is killed by signal: Segmentation fault.",
        {"pid": "19597", "signal": "Segmentation fault"},
        "RuntimeError: DataLoader worker (pid 1) is killed by signal: Killed.",
    ),
    Sample(
        "host-oom",
        "Out of memory: Killed process 4242 (python) total-vm:9000kB",
        {"pid": "4242"},
        "oom_kill 0",
    ),
    Sample(
        "too-many-workers",
        "UserWarning: This DataLoader will create 8 worker processes in total. Our "
        "suggested max number of worker in current system is 2, which is smaller",
        {"workers": "8", "most": "2"},
        "This DataLoader will create 2 worker processes in total.",
    ),
    Sample(
        "too-many-open-files",
        "OSError: [Errno 24] Too many open files",
        {},
        "Too many files",
    ),
    Sample(
        "exit-code",
        "  exitcode  : -7 (pid: 903)",
        {"exitcode": "-7"},
        "  exitcode  : 1 (pid: 903)",
    ),
    Sample(
        "exit-code",
        "[launch.py:325:sigkill_handler] ['python', 'train.py'] exits with return code = -9",
        {"exitcode": "-9"},
        "exits with return code = 1",
    ),
    Sample(
        "exit-code",
        "subprocess.CalledProcessError: Command '['python', 'x.py']' died with "
        "<Signals.SIGKILL: 9>.",
        {"signal": "KILL"},
        "died with a smile",
    ),
    Sample(
        "exit-code",
        "run.sh: line 3:  4242 Killed                  python train.py",
        {"signal": "KILL"},
        "Killed the server",
    ),
    Sample(
        "cuda-before-fork",
        "CUDA has been initialized before the `notebook_launcher` could create a forked "
        "subprocess.",
        {},
        "CUDA has been initialized",
    ),
    Sample(
        "no-main-guard",
        "An attempt has been made to start a new process before the\n        current "
        "process has finished its bootstrapping phase.",
        {},
        "start a new process",
    ),
    Sample(
        "slurm-one-gpu-a-task",
        "#SBATCH --gpus-per-task=1",
        {},
        "#SBATCH --gpus-per-task=4",
    ),
    Sample(
        "slurm-node-rank-early",
        'srun bash -c "torchrun --nnodes=2 --node_rank=$SLURM_NODEID train.py"',
        {},
        "srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID train.py'",
    ),
    Sample(
        "slurm-node-rank-early",
        "export NODE_RANK=$SLURM_NODEID",
        {},
        "echo $SLURM_NODEID",
    ),
    Sample(
        "slurm-node-rank-early",
        "torchrun --nnodes=2 --node_rank=$SLURM_NODEID train.py",
        {},
        "srun torchrun --nnodes=2 train.py",
    ),
    Sample(
        "sampler-with-shuffle",
        "ValueError: sampler option is mutually exclusive with shuffle",
        {},
        "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
        "drop_last",
    ),
    Sample(
        "batch-sampler-with-options",
        "ValueError: batch_sampler option is mutually exclusive with batch_size, shuffle, "
        "sampler, and drop_last",
        {},
        "sampler option is mutually exclusive with shuffle",
    ),
    Sample(
        "sampler-for-iterable",
        "ValueError: DataLoader with IterableDataset: expected unspecified sampler option, "
        "but got sampler=[0]",
        {"option": "sampler"},
        "DataLoader with IterableDataset",
    ),
    Sample(
        "process-group-missing",
        "ValueError: Default process group has not been initialized, please make sure to "
        "call init_process_group.",
        {},
        "the default process group is initialized",
    ),
    Sample(
        "state-dict-keys",
        'Missing key(s) in state_dict: "fc.weight". \n\tUnexpected key(s) in state_dict: '
        '"module.fc.weight".',
        {"missing": "fc.weight", "unexpected": "module.fc.weight"},
        'keys in state_dict: "fc.weight"',
    ),
    Sample(
        "state-dict-keys",
        'Missing key(s) in state_dict: "fc.weight".',
        {"missing": "fc.weight"},
        "Missing keys",
    ),
    Sample(
        "state-dict-keys",
        'Unexpected key(s) in state_dict: "module.fc.weight".',
        {"unexpected": "module.fc.weight"},
        "Unexpected keys",
    ),
    Sample(
        "cuda-device-assert",
        "RuntimeError: CUDA error: device-side assert triggered",
        {"code": "710"},
        "a static assert failed",
    ),
    Sample(
        "cuda-not-supported",
        "RuntimeError: CUDA error: operation not supported",
        {"code": "801"},
        "CUDA error: OS call failed or operation not supported on this OS",
    ),
    Sample(
        "cuda-launch-timeout",
        "RuntimeError: CUDA error: the launch timed out and was terminated",
        {"code": "702"},
        "the download timed out",
    ),
    Sample(
        "gpu-hardware-error",
        "Unexpected error from cudaGetDeviceCount(). Error 700: x",
        {"code": "700"},
        "Error 7001: x",
    ),
    Sample(
        "nvrtc-failed",
        "nvrtc: error: invalid value for --gpu-architecture (-arch)",
        {"reason": "invalid value for --gpu-architecture"},
        "nvrtc: warning",
    ),
    Sample(
        "hip-error",
        "RuntimeError: HIP error: hipErrorLaunchFailure",
        {"error": "hipErrorLaunchFailure"},
        "hipErrorNoBinaryForGpu: Unable to find code object",
    ),
    Sample(
        "mps-out-of-memory",
        "RuntimeError: MPS backend out of memory (MPS allocated: 8.01 GB, other allocations: 1 GB)",
        {"used": "8.01 GB"},
        "MPS backend is available",
    ),
    Sample(
        "mps-operator-missing",
        "The operator 'aten::linalg_svd' is not currently implemented for the MPS device.",
        {"operator": "aten::linalg_svd"},
        "the operator is implemented for the MPS device",
    ),
    Sample(
        "rosetta",
        "Python platform: macOS-14.5-x86_64-i386-64bit\nCPU:\nApple M2 Pro",
        {},
        "Python platform: macOS-14.5-arm64-arm-64bit\nCPU:\nApple M2 Pro",
    ),
    Sample(
        "rosetta",
        "VirtualApple @ 2.50GHz",
        {},
        "Apple M2 Pro",
    ),
    Sample(
        "python-distribution-invalid",
        "WARNING: Ignoring invalid distribution -orch (/venv/lib/python3.11/site-packages)",
        {"name": "-orch"},
        "Ignoring a distribution",
    ),
    Sample(
        "pip-conflict",
        "torchvision 0.15.2 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible.",
        {
            "package": "torchvision",
            "version": "0.15.2",
            "requirement": "torch==2.0.1",
            "have": "torch 2.1.0",
        },
        "flask 2.0 requires jinja2>=3, but you have jinja2 2.0 which is incompatible.",
    ),
    Sample(
        "pip-python-refused",
        "ERROR: Package 'torchvision' requires a different Python: 3.7.9 not in '>=3.8'",
        {"package": "torchvision", "python": "3.7.9", "wanted": ">=3.8"},
        "this package requires another Python",
    ),
    Sample(
        "pip-cannot-uninstall",
        "ERROR: Cannot uninstall 'PyYAML'. It is a distutils installed project and thus we cannot",
        {"package": "PyYAML", "reason": "It is a distutils installed project"},
        "Cannot uninstall requirement foo, not installed",
    ),
    Sample(
        "disk-full",
        "OSError: [Errno 28] No space left on device",
        {},
        "OSError: [Errno 2] No such file",
    ),
    Sample(
        "download-failed",
        "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] "
        "certificate verify failed'))",
        {"kind": "CERTIFICATE_VERIFY_FAILED"},
        "the certificate was verified",
    ),
    Sample(
        "environment-not-writable",
        "ERROR: Could not install packages due to an OSError: [Errno 13] Permission "
        "denied: '/usr/lib/python3'",
        {"file": "/usr/lib/python3"},
        "Defaulting to user installation because normal site-packages is not writeable",
    ),
    Sample(
        "pip-resolution-impossible",
        "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io",
        {},
        "the resolution is impossible",
    ),
    Sample(
        "conda-unsatisfiable",
        "LibMambaUnsatisfiableError: Encountered problems while solving:",
        {"error": "LibMambaUnsatisfiableError"},
        "PackageNotInstalledError: Package is not installed",
    ),
    Sample(
        "nccl-no-interface",
        "[0] include/socket.h:311 WARN Socket creation failed : Address family not supported by "
        "protocol",
        {},
        "socket: Address family not supported by protocol",
    ),
    Sample(
        "nccl-connect-failed",
        "NCCL WARN socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) "
        "errno 115(Operation now in progress)",
        {"peer": "10.0.0.4<56849>", "reason": "No route to host"},
        "curl: (7) Failed to connect to 10.0.0.4 port 80: No route to host",
    ),
    Sample(
        "collective-on-cpu",
        "RuntimeError: No backend type associated with device type cpu",
        {"device": "cpu"},
        "RuntimeError: No backend type associated with device type mps",
    ),
    Sample(
        "gloo-device-unsupported",
        "RuntimeError: makeDeviceForHostname(): unsupported gloo device",
        {},
        "RuntimeError: unsupported device type gloo",
    ),
    Sample(
        "hang-told", "It is frozen at the first step", {}, 'File "<frozen importlib._bootstrap>"'
    ),
    Sample(
        "nvrtc-failed",
        "nvrtc: error: failed to open nvrtc-builtins64_116.dll.",
        {
            "reason": "failed to open nvrtc-builtins64_116.dll",
            "library": "nvrtc-builtins64_116.dll",
        },
        "nvrtc-builtins64_116.dll is there",
    ),
    Sample(
        "nvidia-smi-hangs",
        "since this morning nvidia-smi hangs, too",
        {},
        "I ran nvidia-smi while the training hangs",
    ),
]
