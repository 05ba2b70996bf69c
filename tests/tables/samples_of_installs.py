"""Samples of the rows of symptoms.toml."""

from __future__ import annotations

from tests.tables.symptom_samples import Sample

TORCH = "/home/user/venv/lib/python3.11/site-packages/torch"
LIB = r"C:\Users\user\venv\Lib\site-packages\torch\lib"
DLL = "DLL load failed while importing _C"
COUNT = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
    "NumCudaDevices() that might have already set an error?"
)

SAMPLES = [
    # Windows
    Sample(
        "winerror-dll",
        f"OSError: [WinError 1114] 动态链接库(DLL)初始化例程失败。 Error loading "
        f'"{LIB}\\c10.dll" or one of its dependencies.',
        {"code": "1114", "file": rf"{LIB}\c10.dll"},
        "OSError: [WinError 32] The process cannot access the file: 'C:\\venv\\~orch'",
    ),
    Sample(
        "winerror-dll",
        "ERROR Could not load torch: [WinError 126] Das angegebene Modul wurde nicht gefunden. "
        f'Error loading\n                         "{LIB}\\fbgemm.dll" or one of its dependencies.',
        {"code": "126", "file": rf"{LIB}\fbgemm.dll"},
        "Error loading the page",
    ),
    Sample(
        "winerror-dll",
        r"OSError: [WinError 193] %1 is not a valid Win32 application: 'C:\\x\\cublas64_12.dll'",
        {"code": "193", "file": r"C:\x\cublas64_12.dll"},
        r"OSError: [WinError 123] The filename is incorrect: 'C:\\x\\cublas64_12.dll'",
    ),
    Sample(
        "winerror-dll",
        "OSError: [WinError 182] O sistema operacional não pode executar %1.",
        {"code": "182"},
        "PermissionError: [WinError 5] Access is denied",
    ),
    Sample(
        "winerror-dll",
        f"FileNotFoundError: Could not find module '{LIB}\\c10.dll' (or one of its dependencies). "
        "Try using the full path with constructor syntax.",
        {"code": "126", "file": rf"{LIB}\c10.dll"},
        f"FileNotFoundError: Could not find module '{LIB}\\c10.dll'",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: The specified module could not be found.",
        {"code": "126", "module": "_C"},
        "The specified module could not be found.",
    ),
    Sample(
        "winerror-dll",
        "ImportError: DLL load failed: 找不到指定的模块。",
        {"code": "126"},
        "找不到指定的模块。",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: Le module spécifié est introuvable.",
        {"code": "126", "module": "_C"},
        "Le module spécifié est introuvable.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: 지정된 프로시저를 찾을 수 없습니다.",
        {"code": "127", "module": "_C"},
        "The specified procedure could not be found.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: A dynamic link library (DLL) initialization routine failed.",
        {"code": "1114", "module": "_C"},
        "the initialization routine failed",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: %1 不是有效的 Win32 应用程序。",
        {"code": "193", "module": "_C"},
        "%1 is not a valid Win32 application.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: The paging file is too small for this operation to complete.",
        {"code": "1455", "module": "_C"},
        "The paging file is too small.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: An Application Control policy has blocked this file.",
        {"code": "4551", "module": "_C"},
        "An Application Control policy is in force.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: Valami nincs rendben.",
        {"module": "_C", "reason": "Valami nincs rendben."},
        "load failed while importing _C: Valami",
    ),
    Sample(
        "vc-runtime-not-found",
        "Microsoft Visual C++ Redistributable is not installed, this may lead to the DLL load "
        "failure.",
        {},
        "Microsoft Visual C++ Redistributable 14.44 is installed",
    ),
    Sample(
        "library-not-loaded",
        f"OSError: Could not load this library: {TORCH}audio/lib/_torchaudio.so",
        {"file": f"{TORCH}audio/lib/_torchaudio.so"},
        "Could not load this library: it is closed on Sundays",
    ),
    Sample(
        "windows-exception",
        "Windows fatal exception: access violation",
        {"kind": "access violation"},
        "Windows fatal exception handler installed",
    ),
    Sample(
        "windows-exception",
        "Windows fatal exception: code 0xc06d007e",
        {"kind": "code 0xc06d007e", "code": "0xc06d007e"},
        "fatal exception: code 0xc06d007e",
    ),
    Sample(
        "fatal-signal",
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):",
        {"kind": "Segmentation fault"},
        "Fatal Python error: init_fs_encoding: failed to get the Python codec",
    ),
    Sample(
        "fatal-signal",
        "Illegal instruction (core dumped)",
        {"kind": "Illegal instruction"},
        "An illegal instruction was issued",
    ),
    # Linux
    Sample(
        "shared-library-missing",
        "OSError: libcurand.so.10: cannot open shared object file: No such file or directory",
        {"library": "libcurand.so.10", "reason": "No such file or directory"},
        "cannot open the file libcurand.so.10",
    ),
    Sample(
        "shared-library-missing",
        "ImportError: libcudnn.so.9: 无法打开共享目标文件: 没有那个文件或目录",
        {"library": "libcudnn.so.9", "reason": "没有那个文件或目录"},
        "libcudnn.so.9: 没有那个文件或目录",
    ),
    Sample(
        "shared-library-missing",
        "ImportError: Error loading shared library ld-linux-x86-64.so.2: No such file or directory "
        f"(needed by {TORCH}/_C.so)",
        {
            "library": "ld-linux-x86-64.so.2",
            "reason": "No such file or directory",
            "required_by": f"{TORCH}/_C.so",
            "loader": "musl",
        },
        "Error loading shared library: ask your administrator",
    ),
    Sample(
        "preload-not-found",
        "ValueError: libcublas.so.*[0-9] not found in the system path ['/home/user', '/usr/lib']",
        {"library": "libcublas.so"},
        "ValueError: libcublas.so.12 not found in the system path",
    ),
    Sample(
        "undefined-symbol",
        f"ImportError: {TORCH}/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: "
        "__nvJitLinkAddData_12_1, version libnvJitLink.so.12",
        {
            "family": "nvjitlink",
            "file": f"{TORCH}/lib/../../nvidia/cusparse/lib/libcusparse.so.12",
            "symbol": "__nvJitLinkAddData_12_1",
            "version": "libnvJitLink.so.12",
        },
        "the symbol __nvJitLinkAddData_12_1 is defined",
    ),
    Sample(
        "undefined-symbol",
        f"ImportError: {TORCH}/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister",
        {
            "family": "nccl",
            "file": f"{TORCH}/lib/libtorch_cuda.so",
            "symbol": "ncclCommRegister",
        },
        "ncclCommRegister: unhandled system error",
    ),
    Sample(
        "undefined-symbol",
        "ImportError: /opt/libcusparse.so.12: symbol __nvJitLinkComplete_12_4, version "
        "libnvJitLink.so.12 not defined in file libnvJitLink.so.12 with link time reference",
        {
            "family": "nvjitlink",
            "file": "/opt/libcusparse.so.12",
            "symbol": "__nvJitLinkComplete_12_4",
            "version": "libnvJitLink.so.12",
            "library": "libnvJitLink.so.12",
        },
        "the symbol __nvJitLinkComplete_12_4 is in the file libnvJitLink.so.12",
    ),
    Sample(
        "undefined-symbol",
        "ImportError: /opt/libtorch_cuda.so: symbol ncclCommRegister, version NCCL_2 "
        "not defined in file libnccl.so.2 with link time reference",
        {
            "family": "nccl",
            "file": "/opt/libtorch_cuda.so",
            "symbol": "ncclCommRegister",
            "version": "NCCL_2",
            "library": "libnccl.so.2",
        },
        "the symbol ncclCommRegister of version NCCL_2 is in the file libnccl.so.2",
    ),
    Sample(
        "undefined-symbol",
        "ImportError: /opt/libtorch_cuda.so: symbol cudnnGetVersion, version libcudnn.so.9 "
        "not defined in file libcudnn.so.9 with link time reference",
        {
            "family": "cudnn",
            "file": "/opt/libtorch_cuda.so",
            "symbol": "cudnnGetVersion",
            "version": "libcudnn.so.9",
            "library": "libcudnn.so.9",
        },
        "the symbol cudnnGetVersion of version libcudnn.so.9 is in the file libcudnn.so.9",
    ),
    Sample(
        "undefined-symbol",
        "ImportError: /opt/libcublas.so.12: symbol cublasLtGetEnvironmentMode, version "
        "libcublasLt.so.12 not defined in file libcublasLt.so.12 with link time reference",
        {
            "family": "cuda",
            "file": "/opt/libcublas.so.12",
            "symbol": "cublasLtGetEnvironmentMode",
            "version": "libcublasLt.so.12",
            "library": "libcublasLt.so.12",
        },
        "the symbol cublasLtGetEnvironmentMode is in the file libcublasLt.so.12",
    ),
    Sample(
        "undefined-symbol",
        f"ImportError: {TORCH}/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
        {
            "family": "mkl",
            "file": f"{TORCH}/lib/libtorch_cpu.so",
            "symbol": "iJIT_NotifyEvent",
        },
        "iJIT_NotifyEvent was called",
    ),
    Sample(
        "undefined-symbol",
        "Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/"
        "libcudnn_cnn_train.so.8: undefined symbol: cudnnGetLibConfig, version libcudnn_ops.so.9",
        {
            "family": "cudnn",
            "file": "/usr/local/cuda/lib64/libcudnn_cnn_train.so.8",
            "symbol": "cudnnGetLibConfig",
            "version": "libcudnn_ops.so.9",
        },
        "cudnnGetLibConfig is defined in libcudnn_graph.so.9",
    ),
    Sample(
        "undefined-symbol",
        f"ImportError: {TORCH}/lib/libtorch_cpu.so: undefined symbol: "
        "cudaGetDriverEntryPointByVersion, version libcudart.so.12",
        {
            "family": "cuda",
            "file": f"{TORCH}/lib/libtorch_cpu.so",
            "symbol": "cudaGetDriverEntryPointByVersion",
            "version": "libcudart.so.12",
        },
        "undefined reference to cudaMalloc",
    ),
    Sample(
        "undefined-symbol",
        f"ImportError: {TORCH}/lib/libtorch_python.so: undefined symbol: _PyThreadState_Unchecked",
        {
            "family": "python",
            "file": f"{TORCH}/lib/libtorch_python.so",
            "symbol": "_PyThreadState_Unchecked",
        },
        "undefined: PyObject",
    ),
    Sample(
        "undefined-symbol",
        "ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocation"
        "ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        {
            "abi": "new",
            "family": "torch",
            "file": "flash_attn_2_cuda.so",
            "symbol": "_ZN3c105ErrorC2ENS_14SourceLocation"
            "ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        },
        "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_string",
    ),
    Sample(
        "undefined-symbol",
        "OSError: libtorchtext.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs",
        {
            "abi": "old",
            "family": "torch",
            "file": "libtorchtext.so",
            "symbol": "_ZN5torch3jit17parseSchemaOrNameERKSs",
        },
        "symbol: _ZN5torch3jit17parseSchemaOrNameERKSs",
    ),
    Sample(
        "undefined-symbol",
        "OSError: libtorchaudio.abi3.so: undefined symbol: torch_dtype_float4_e2m1fn_x2",
        {
            "family": "torch",
            "file": "libtorchaudio.abi3.so",
            "symbol": "torch_dtype_float4_e2m1fn_x2",
        },
        "torch_dtype_float4_e2m1fn_x2 is undefined",
    ),
    Sample(
        "undefined-symbol",
        "ImportError: /opt/x.so: undefined symbol: my_function",
        {"file": "/opt/x.so", "symbol": "my_function"},
        "/opt/x.so: undefined reference to `my_function'",
    ),
    Sample(
        "undefined-symbol",
        f"OSError: Error relocating {TORCH}/lib/libgomp-a34b3233.so.1: pthread_attr_setaffinity_np:"
        " symbol not found",
        {
            "file": f"{TORCH}/lib/libgomp-a34b3233.so.1",
            "symbol": "pthread_attr_setaffinity_np",
            "loader": "musl",
        },
        "Error relocating the office",
    ),
    Sample(
        "symbol-version-missing",
        "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found "
        f"(required by {TORCH}/lib/libx.so)",
        {
            "library": "/lib/x86_64-linux-gnu/libstdc++.so.6",
            "namespace": "GLIBCXX",
            "version": "3.4.32",
            "required_by": f"{TORCH}/lib/libx.so",
        },
        "GLIBCXX_3.4.32 not found",
    ),
    Sample(
        "symbol-version-missing",
        "ImportError: /usr/lib/libcublasLt.so.12: version `libcublasLt.so.12' not found "
        "(required by /a/libcublas.so.12)",
        {
            "library": "/usr/lib/libcublasLt.so.12",
            "version": "libcublasLt.so.12",
            "required_by": "/a/libcublas.so.12",
        },
        "a version of 'libcublasLt' not found",
    ),
    Sample(
        "executable-stack-refused",
        "ImportError: libtorch_cpu.so: cannot enable executable stack as shared object requires: "
        "Invalid argument",
        {"file": "libtorch_cpu.so", "reason": "Invalid argument"},
        "cannot enable an executable stack",
    ),
    Sample(
        "library-damaged",
        f"ImportError: {TORCH}/lib/libtorch_cpu.so: file too short",
        {"file": f"{TORCH}/lib/libtorch_cpu.so", "kind": "truncated"},
        "the file is too short",
    ),
    Sample(
        "library-damaged",
        "OSError: libtorch_cpu.so: ELF load command past end of file",
        {"file": "libtorch_cpu.so", "kind": "truncated"},
        "ELF load command read",
    ),
    Sample(
        "library-damaged",
        "OSError: /usr/lib/libm.so: invalid ELF header",
        {"file": "/usr/lib/libm.so", "kind": "not a library"},
        "bash: ./run.sh: Exec format error",
    ),
    Sample(
        "library-damaged",
        "tried: '/opt/lib/libtorch.dylib' (not a mach-o file)",
        {"file": "/opt/lib/libtorch.dylib", "kind": "not a library"},
        "tried: '/opt/lib/libtorch.dylib' (no such file)",
    ),
    Sample(
        "wrong-architecture",
        "ImportError: /opt/x.so: wrong ELF class: ELFCLASS32",
        {"have": "32", "file": "/opt/x.so"},
        "ELFCLASS32 is the class",
    ),
    Sample(
        "wrong-architecture",
        "(mach-o file, but is an incompatible architecture (have (arm64), need (x86_64h)))",
        {"have": "arm64", "need": "x86_64h"},
        "this is an incompatible architecture",
    ),
    Sample(
        "wrong-architecture",
        "(mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64'))",
        {"have": "x86_64", "need": "arm64"},
        "(have 'x86_64', need 'arm64')",
    ),
    Sample(
        "static-tls-exhausted",
        "OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS "
        "block",
        {"file": "/usr/lib/aarch64-linux-gnu/libgomp.so.1"},
        "cannot allocate memory",
    ),
    Sample(
        "library-not-mapped",
        "ImportError: libtorch_cuda.so: failed to map segment from shared object",
        {"file": "libtorch_cuda.so"},
        "failed to map segment",
    ),
    # macOS
    Sample(
        "dyld-library-missing",
        "ImportError: dlopen(/v/torch/_C.so, 2): Library not loaded: @rpath/libomp.dylib\n"
        "  Referenced from: <1F2E> /v/torch/lib/libtorch_cpu.dylib\n  Reason: image not found",
        {
            "library": "@rpath/libomp.dylib",
            "required_by": "/v/torch/lib/libtorch_cpu.dylib",
        },
        "Library loaded: libomp.dylib",
    ),
    Sample(
        "dyld-symbol-missing",
        "Symbol not found: ___addtf3\n  Referenced from: /usr/local/lib/libquadmath.0.dylib\n"
        "  Expected in: /usr/lib/libSystem.B.dylib",
        {
            "symbol": "___addtf3",
            "required_by": "/usr/local/lib/libquadmath.0.dylib",
            "library": "/usr/lib/libSystem.B.dylib",
        },
        "symbol not found",
    ),
    Sample(
        "dyld-symbol-missing",
        "Symbol not found: (_kX)\n  Referenced from: <AB-1> /v/libtorch_cpu.dylib (built for macOS "
        "14.0 which is newer than running OS)\n  Expected in: <CD-2> /usr/lib/libc++.1.dylib",
        {
            "symbol": "_kX",
            "required_by": "/v/libtorch_cpu.dylib",
            "built_for": "14.0",
            "library": "/usr/lib/libc++.1.dylib",
        },
        "Symbol found: (_kX)",
    ),
    Sample(
        "library-blocked",
        "'/v/libtorch.dylib' (code signature in <12-AB> '/v/libtorch.dylib' not valid for use in "
        "process: library load disallowed by system policy)",
        {"file": "/v/libtorch.dylib"},
        "the code signature is valid",
    ),
    # Python
    Sample(
        "torch-c-folder",
        "ImportError: Failed to load PyTorch C extensions:\n    It appears that PyTorch has loaded "
        "the `torch/_C` folder",
        {},
        "Failed to load C extensions",
    ),
    Sample(
        "module-missing",
        "ModuleNotFoundError: No module named 'torch._C'",
        {"module": "torch._C"},
        "There is no module of that name",
    ),
    Sample(
        "circular-import",
        "AttributeError: partially initialized module 'torch' has no attribute 'nn' (most likely "
        "due to a circular import)",
        {"module": "torch", "attribute": "nn"},
        "AttributeError: module 'torch' has no attribute 'nn'",
    ),
    Sample(
        "circular-import",
        "ImportError: cannot import name 'nn' from partially initialized module 'torch' (most "
        "likely due to a circular import) (/home/user/torch.py)",
        {"module": "torch", "attribute": "nn", "file": "/home/user/torch.py"},
        "ImportError: cannot import name 'nn' from 'torch'",
    ),
    Sample(
        "name-hidden",
        "AttributeError: module 'torch' has no attribute 'nn' (consider renaming "
        "'/home/user/torch.py' since it has the same name as the library)",
        {"module": "torch", "attribute": "nn", "file": "/home/user/torch.py"},
        "AttributeError: module 'torch' has no attribute 'nn'",
    ),
    Sample(
        "name-missing",
        "AttributeError: module 'torch.library' has no attribute 'register_fake'",
        {"module": "torch.library", "attribute": "register_fake"},
        "AttributeError: partially initialized module 'torch' has no attribute 'nn'",
    ),
    Sample(
        "name-missing",
        f"ImportError: cannot import name 'Tensor' from 'torch' ({TORCH}/__init__.py)",
        {"module": "torch", "attribute": "Tensor", "file": f"{TORCH}/__init__.py"},
        "ImportError: cannot import name 'nn' from partially initialized module 'torch'",
    ),
    Sample(
        "torch-imported-twice",
        "RuntimeError: function '_has_torch_function' already has a docstring",
        {"function": "_has_torch_function"},
        "the function already has a name",
    ),
    Sample(
        "operator-library-twice",
        "Only a single TORCH_LIBRARY can be used to register the namespace torchvision; please",
        {"namespace": "torchvision"},
        "use TORCH_LIBRARY to register the namespace",
    ),
    Sample(
        "python-file-damaged",
        "SyntaxError: source code string cannot contain null bytes",
        {},
        "a string cannot contain null",
    ),
    Sample(
        "file-not-readable",
        f"PermissionError: [Errno 13] Permission denied: '{TORCH}/version.py'",
        {"code": "13", "file": f"{TORCH}/version.py"},
        "FileNotFoundError: [Errno 2] No such file or directory: '/x'",
    ),
    Sample("memory-exhausted", "MemoryError", {}, "NoMemoryErrorAtAll"),
    # NumPy, MKL, OpenMP
    Sample(
        "numpy-1-abi",
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.0 as it may crash.",
        {"numpy": "2.0.0"},
        "A module that was compiled using NumPy 2.1",
    ),
    Sample(
        "numpy-1-abi",
        "UserWarning: Failed to initialize NumPy: _ARRAY_API not found",
        {},
        "AttributeError: ARRAY_API",
    ),
    Sample(
        "numpy-1-abi",
        "RuntimeError: module was compiled against NumPy C-API; compiled against API version 0x10 "
        "but this version of numpy is 0xf",
        {"compiled": "0x10", "found": "0xf"},
        "this version of numpy is 2.0",
    ),
    Sample(
        "numpy-1-abi",
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 "
        "from C header, got 88 from PyObject",
        {"compiled": "96", "found": "88"},
        "numpy.dtype size changed",
    ),
    Sample(
        "numpy-not-available",
        "RuntimeError: Numpy is not available",
        {},
        "RuntimeError: numpy.linalg is not available",
    ),
    Sample(
        "numpy-not-initialized",
        "UserWarning: Failed to initialize NumPy: No module named 'numpy' (Triggered internally)",
        {"reason": "No module named 'numpy'"},
        "NumPy was initialized",
    ),
    Sample(
        "openmp-twice",
        "OMP: Error #15: Initializing libiomp5md.dll, but found libomp140.x86_64.dll already "
        "initialized.",
        {"second": "libiomp5md.dll", "first": "libomp140.x86_64.dll"},
        "OMP: Error #13: Assertion failure at kmp_affinity.cpp",
    ),
    Sample(
        "mkl-library-missing",
        "INTEL MKL ERROR: The specified module could not be found. mkl_intel_thread.1.dll.",
        {"library": "mkl_intel_thread.1.dll"},
        "Intel MKL FATAL ERROR: out of memory",
    ),
    Sample(
        "mkl-threading-clash",
        "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with "
        "libgomp.so.1 library.",
        {"layer": "INTEL", "library": "libgomp.so.1"},
        "MKL_THREADING_LAYER=GNU",
    ),
    # CUDA
    Sample(
        "not-compiled-with-cuda",
        "AssertionError: Torch not compiled with CUDA enabled",
        {},
        "Torch compiled with CUDA enabled",
    ),
    Sample(
        "not-compiled-with-xpu",
        "AssertionError: Torch not compiled with XPU enabled",
        {},
        "AssertionError: Torch not compiled with CUDA enabled",
    ),
    Sample(
        "no-nvidia-driver",
        "RuntimeError: Found no NVIDIA driver on your system. Please check",
        {},
        "Found NVIDIA driver 580.65 on your system",
    ),
    Sample(
        "cuda-driver-too-old",
        "The NVIDIA driver on your system is too old (found version 12080). Please update",
        {"cuda": "12.8"},
        "The NVIDIA driver on your system is too new",
    ),
    Sample(
        "cuda-driver-too-old",
        "CUDA driver version is insufficient for CUDA runtime version",
        {"code": "35"},
        f"{COUNT} Error 350: something",
    ),
    Sample(
        "cuda-driver-stub", f"{COUNT} Error 34: CUDA driver is a stub library", {"code": "34"}, "34"
    ),
    Sample("cuda-needs-newer-driver", "cudaErrorCallRequiresNewerDriver", {"code": "36"}, "newer"),
    Sample(
        "cuda-no-device", "RuntimeError: No CUDA GPUs are available", {}, "CUDA GPUs are available"
    ),
    Sample(
        "cuda-no-device",
        f"{COUNT} Error 100: no CUDA-capable device is detected",
        {"code": "100"},
        f"{COUNT} Error 1000: something",
    ),
    Sample(
        "cuda-invalid-device",
        "RuntimeError: CUDA error: invalid device ordinal",
        {"code": "101"},
        "invalid ordinal",
    ),
    Sample(
        "device-count-mismatch",
        'RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "../aten/src/ATen'
        '/cuda/CUDAContext.cpp":49, please report a bug to PyTorch. device=1, num_gpus=1',
        {"device": "1", "count": "1"},
        "device < num_gpus",
    ),
    Sample(
        "no-kernel-image",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        {"code": "209"},
        "no image is available",
    ),
    Sample(
        "invalid-device-function",
        "RuntimeError: HIP error: invalid device function",
        {"code": "98"},
        "invalid function",
    ),
    Sample(
        "gpu-not-in-build",
        "UserWarning: \nNVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with "
        "the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities "
        "sm_50 sm_90 compute_37.",
        {
            "gpu": "NVIDIA GeForce RTX 5090",
            "capability": "12.0",
            "built": "sm_50 sm_90 compute_37",
        },
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120",
    ),
    Sample(
        "gpu-not-in-build",
        "    Found GPU0 NVIDIA GeForce GTX 1080 Ti which is of cuda capability 6.1.\n    Minimum "
        "and Maximum cuda capability supported by this version of PyTorch is\n    (7.0) - (12.0)",
        {
            "index": "0",
            "gpu": "NVIDIA GeForce GTX 1080 Ti",
            "capability": "6.1",
            "lowest": "7.0",
            "highest": "12.0",
        },
        "a GPU which is of cuda capability",
    ),
    Sample(
        "gpu-not-in-build",
        "Found GPU1 Tesla V100-SXM2-16GB which is of compute capability (CC) 7.0.",
        {"index": "1", "gpu": "Tesla V100-SXM2-16GB", "capability": "7.0"},
        "- 7.0 which supports hardware CC >=7.0,<8.0 except {7.2}",
    ),
    Sample(
        "unsupported-ptx",
        "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        {"code": "222"},
        "an unsupported toolchain",
    ),
    Sample(
        "cuda-call-failed-in-os",
        f"{COUNT} Error 304: OS call failed or operation not supported on this OS",
        {"code": "304"},
        "HTTP Error 304 Not Modified",
    ),
    Sample(
        "cuda-system-not-ready",
        "RuntimeError: cuda runtime error (802) : system not yet initialized at THCGeneral.cpp:50",
        {"code": "802"},
        "The logging system not yet initialized",
    ),
    Sample(
        "cuda-driver-mismatch",
        f"{COUNT} Error 803: system has unsupported display driver / cuda driver combination",
        {"code": "803"},
        "IEEE 802.3",
    ),
    Sample(
        "cuda-compat-not-supported",
        f"{COUNT} Error 804: forward compatibility was attempted on non supported HW",
        {"code": "804"},
        "Error 8042: something",
    ),
    Sample("cuda-mps-failed", f"{COUNT} Error 805: MPS", {"code": "805"}, "mps is not available"),
    Sample(
        "cuda-unknown-error",
        "CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up "
        "environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
        {"code": "999"},
        "an unknown error",
    ),
    Sample(
        "cuda-device-busy",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        {"code": "46"},
        "the line is busy",
    ),
    Sample(
        "cuda-out-of-memory",
        f"{COUNT} Error 2: out of memory",
        {"code": "2"},
        "std: out of memory",
    ),
    Sample(
        "cuda-initialization-error",
        "RuntimeError: CUDA error: initialization error",
        {"code": "3"},
        "an initialization error",
    ),
    Sample(
        "gpu-hardware-error",
        "CUDA error: uncorrectable ECC error encountered",
        {"kind": "uncorrectable ECC error"},
        "ECC is on",
    ),
    Sample(
        "cuda-after-fork",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with",
        {},
        "CUDA in a subprocess",
    ),
    Sample(
        "cuda-build-broken",
        "AssertionError: libcudart functions unavailable. It looks like you have a broken build?",
        {},
        "libcudart.so.12 is there",
    ),
    Sample(
        "nvml-version-mismatch",
        "Failed to initialize NVML: Driver/library version mismatch",
        {},
        "version mismatch",
    ),
    Sample(
        "nvml-not-initialized",
        "UserWarning: Can't initialize NVML",
        {},
        "NVML is initialized",
    ),
    Sample(
        "cudnn-mismatch",
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but "
        "found runtime version (8, 9, 7). PyTorch already comes with bundled cuDNN.",
        {"compiled": "9.1.0", "found": "8.9.7"},
        "cuDNN version 9.1.0",
    ),
    Sample(
        "cudnn-library-missing",
        "Could not locate cudnn_graph64_9.dll. Please make sure it is in your library path!",
        {"library": "cudnn_graph64_9.dll"},
        "Could not locate the library",
    ),
    Sample(
        "cudnn-library-missing",
        "Could not locate zlibwapi.dll. Please make sure it is in your library path!",
        {"library": "zlibwapi.dll"},
        "Could not locate zlib.dll",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: The operating system cannot run %1.",
        {"code": "182", "module": "_C"},
        "The operating system cannot run %1.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: 操作系统无法运行 %1。",
        {"code": "182", "module": "_C"},
        "操作系统无法运行 %1。",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: O sistema operacional não pode executar %1.",
        {"code": "182", "module": "_C"},
        "O sistema operacional não pode executar %1.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: 内存位置访问无效。",
        {"code": "998", "module": "_C"},
        "内存位置访问无效。",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: the file contains a virus or potentially unwanted software.",
        {"code": "225", "module": "_C"},
        "the file contains a virus or potentially unwanted software.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: Отказано в доступе.",
        {"code": "5", "module": "_C"},
        "Отказано в доступе.",
    ),
    Sample(
        "winerror-dll",
        f"ImportError: {DLL}: 拒绝访问。",
        {"code": "5", "module": "_C"},
        "拒绝访问。",
    ),
    Sample(
        "imported-first",
        ">>> import PyQt5\n>>> import spacy",
        {"module": "PyQt5"},
        "the line import PyQt5 was taken out",
    ),
    Sample(
        "program-status",
        "Process finished with exit code -1073741515 (0xC0000135)",
        {"code": "0xC0000135"},
        "Process finished with exit code -1073741819 (0xC0000005)",
    ),
    Sample(
        "program-status",
        "The application was unable to start correctly (0xc0000142). Click OK to close.",
        {"code": "0xC0000142"},
        "at address 0x00000000c0000142",
    ),
    Sample(
        "program-status",
        "python.exe exited with 3221225785",
        {"code": "0xC0000139"},
        "3221225785.5 bytes were read, of 13221225785",
    ),
    Sample(
        "program-status",
        "status 0xC0000138",
        {"code": "0xC0000138"},
        "0xC00001380",
    ),
    Sample(
        "program-status",
        "(exit code: 0xc000007b)",
        {"code": "0xC000007B"},
        "id-3221225595",
    ),
    Sample(
        "program-status",
        "exit code 3221225773",
        {"code": "0xC000012D"},
        "exit code 322122577",
    ),
    Sample(
        "cudnn-library-missing",
        "Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9.1}",
        {"library": "libcudnn_graph.so.9.1.0"},
        "Could not load library libfoo.so",
    ),
    Sample(
        "cuda-library-error",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`",
        {"status": "CUBLAS_STATUS_NOT_INITIALIZED"},
        "CUBLAS_STATUS_SUCCESS",
    ),
    # ROCm, XPU
    Sample(
        "hip-no-binary",
        '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"',
        {},
        "no code object",
    ),
    Sample("hip-no-device", "RuntimeError: No HIP GPUs are available", {}, "HIP GPUs"),
    Sample(
        "rocblas-arch-missing",
        "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek "
        "for GPU arch : gfx1103",
        {"gfx": "gfx1103"},
        "TensileLibrary_lazy_gfx941.dat",
    ),
    Sample("xpu-no-device", "RuntimeError: No XPU devices are available.", {}, "XPU devices"),
    # torchvision, torchaudio
    Sample(
        "nms-operator-missing",
        "RuntimeError: operator torchvision::nms does not exist",
        {"operator": "torchvision::nms"},
        "torchvision::nms was called",
    ),
    Sample(
        "operator-missing",
        "RuntimeError: operator torchaudio::rnnt_loss does not exist",
        {"operator": "torchaudio::rnnt_loss"},
        "RuntimeError: operator torchvision::nms does not exist",
    ),
    Sample(
        "torchvision-ops-not-loaded",
        "RuntimeError: Couldn't load custom C++ ops. This can happen if",
        {},
        "custom C++ ops",
    ),
    Sample(
        "torchvision-image-not-loaded",
        "UserWarning: Failed to load image Python extension: 'Could not find module x'",
        {"reason": "'Could not find module x'"},
        "Failed to load image",
    ),
    Sample(
        "torchvision-cuda-mismatch",
        "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA "
        "major versions. PyTorch has CUDA Version=12.8 and torchvision has CUDA Version=11.8. "
        "Please reinstall",
        {"torch": "12.8", "torchvision": "11.8"},
        "PyTorch has CUDA Version=12.8",
    ),
    Sample(
        "torchaudio-cuda-mismatch",
        "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA "
        "versions. PyTorch has CUDA version 11.8 whereas TorchAudio has CUDA version 11.7. Please",
        {"torch": "11.8", "torchaudio": "11.7"},
        "PyTorch has CUDA version 11.8",
    ),
    Sample(
        "operator-not-on-device",
        "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' "
        "backend.",
        {"operator": "torchvision::nms", "backend": "CUDA"},
        "Could not run 'make'",
    ),
    Sample(
        "torchcodec-not-loaded",
        "RuntimeError: Could not load libtorchcodec. Likely causes:",
        {},
        "libtorchcodec is loaded",
    ),
    Sample(
        "torchcodec-missing",
        "ImportError: TorchCodec is required for load_with_torchcodec. Please install torchcodec "
        "to use this function.",
        {"function": "load_with_torchcodec"},
        "TorchCodec is required for some tests; see load_with_torchcodec",
    ),
    # GPUs and their code
    Sample(
        "mps-macos-too-old",
        "RuntimeError: The MPS backend is supported on MacOS 13.0+.Current OS version can be "
        "queried using `sw_vers`",
        {"macos": "13.0"},
        "The MPS backend is supported on Apple silicon",
    ),
    Sample(
        "flash-attn-gpu-too-old",
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        {},
        "FlashAttention was built for Ampere GPUs or newer.",
    ),
    Sample(
        "flash-attn-gpu-too-old",
        "ValueError: FlashAttention2 is not supported on this GPU architecture (sm_70).",
        {"capability": "7.0"},
        "FlashAttention2 is supported on this GPU architecture (sm_80).",
    ),
    Sample(
        "hsa-not-started",
        "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary "
        "resources.",
        {},
        "MY_HSA_STATUS_ERROR_OUT_OF_RESOURCES_2 = 0x1008",
    ),
    Sample(
        "kernel-image-invalid",
        "RuntimeError: CUDA error: device kernel image is invalid",
        {},
        "a device kernel image is invalidated",
    ),
    Sample(
        "kernel-image-invalid",
        "RuntimeError: HIP error: hipErrorInvalidImage",
        {},
        "hipErrorInvalidImageFormat",
    ),
    # what installers say
    Sample(
        "no-wheel-found",
        "ERROR: Could not find a version that satisfies the requirement torch==2.15.0 (from "
        "versions: none)",
        {"requirement": "torch==2.15.0", "versions": "none"},
        "ERROR: Could not find a version that satisfies the requirement torchmetrics==9 (from "
        "versions: 1.0)",
    ),
    Sample(
        "wheel-not-for-here",
        "ERROR: torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl is not a supported wheel on "
        "this platform.",
        {"wheel": "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl"},
        "ERROR: torch.zip is not a supported wheel on this platform.",
    ),
    Sample(
        "externally-managed",
        "error: externally-managed-environment",
        {},
        "not-externally-managed-environments",
    ),
    Sample(
        "no-wheel-found",
        "  ╰─▶ Because there is no version of torch==2.7.0+cu126 and your project depends on\n"
        "      torch==2.7.0+cu126, we can conclude that",
        {"requirement": "torch==2.7.0+cu126"},
        "Because there is no version of torchmetrics==99 and you require torchmetrics==99",
    ),
    Sample(
        "wheel-tags-unmatched",
        "Because torch==1.12.0+cu113 has no wheels with a matching Python ABI\n"
        "      tag (e.g., `cp311`) and you require torch==1.12.0+cu113",
        {"requirement": "torch==1.12.0+cu113", "kind": "Python ABI", "tag": "cp311"},
        "Because all versions of torchcodec have no wheels with a matching Python ABI tag",
    ),
    Sample(
        "wheel-tags-unmatched",
        "hint: You're using CPython 3.14 (`cp314`), but `torch` (v2.8.0) only has wheels with the "
        "following Python ABI tags: `cp312`, `cp313`, `cp313t`",
        {
            "requirement": "torch",
            "version": "2.8.0",
            "tag": "cp314",
            "have": "`cp312`, `cp313`, `cp313t`",
            "kind": "Python ABI",
        },
        "hint: You're using CPython 3.14 (`cp314`), and `torch` (v2.9.0) has wheels for it",
    ),
    Sample(
        "archive-damaged",
        "zipfile.BadZipFile: Bad CRC-32 for file 'torch/lib/cublasLt64_11.dll'",
        {"file": "torch/lib/cublasLt64_11.dll", "kind": "checksum"},
        "CRC-32 for file 'torch/lib/cublasLt64_11.dll' is right",
    ),
    Sample(
        "archive-damaged",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have "
        "updated the package versions, please update the hashes.\n"
        "    torch==2.4.0 from https://download.pytorch.org/whl/cu121/torch-2.4.0-cp311.whl:",
        {"file": "torch==2.4.0", "kind": "hash"},
        "these packages match the hashes",
    ),
    Sample(
        "archive-damaged",
        "ERROR: Wheel 'torch' located at /tmp/pip-unpack-1/torch-2.4.0-cp311-linux.whl is invalid.",
        {"file": "torch", "kind": "incomplete"},
        "Wheel 'torch' located at /tmp/torch.whl is valid.",
    ),
    Sample(
        "path-too-long",
        "EnvironmentError: [Errno 2] No such file or directory: 'C:\\\\Users\\\\user\\\\"
        + "a" * 240
        + ".zip'",
        {"file": "C:\\Users\\user\\" + "a" * 240 + ".zip"},
        "EnvironmentError: [Errno 2] No such file or directory: 'C:\\\\Users\\\\user\\\\model.pt'",
    ),
    Sample(
        "path-too-long",
        "HINT: This error might have occurred since this system does not have Windows Long Path "
        "support enabled. You can find information on how to enable this at "
        "https://pip.pypa.io/warnings/enable-long-paths",
        {},
        "This system does have Windows Long Path support enabled.",
    ),
    Sample(
        "build-without-torch",
        '  File "/tmp/pip-build-env-x1/overlay/site-packages/setuptools/build_meta.py", line 317, '
        "in run_setup\n"
        "    exec(code, locals())\n"
        '  File "<string>", line 22, in <module>\n'
        "ModuleNotFoundError: No module named 'torch'",
        {},
        '  File "/home/user/train.py", line 3, in <module>\n'
        "ModuleNotFoundError: No module named 'torch'",
    ),
    Sample(
        "build-without-torch",
        "hint: This error likely indicates that `flash-attn@2.8.1` depends on `torch`, but doesn't "
        "declare it as a build dependency.",
        {"package": "flash-attn"},
        "hint: This error likely indicates that `foo@1.0` depends on `numpy`, but doesn't declare "
        "it as a build dependency.",
    ),
    Sample(
        "cuda-virtual-package",
        "    ╰─▶ Virtual package '__cuda >=12' does not match any of the available virtual "
        "packages on your machine: [__archspec=1=zen2, __glibc=2.39=0]",
        {"wanted": ">=12", "have": "__archspec=1=zen2, __glibc=2.39=0", "tool": "pixi"},
        "Virtual package '__archspec ==1 x86_64' does not match any of the available virtual "
        "packages on your machine: [__cuda=12.4=0]",
    ),
    Sample(
        "cuda-virtual-package",
        "  - nothing provides __cuda needed by pytorch-1.11.0-cuda102py310hdf4a2db_202",
        {"package": "pytorch-1.11.0-cuda102py310hdf4a2db_202"},
        "  - nothing provides __glibc >=2.28 needed by pytorch-2.5.1-cpu_0",
    ),
    Sample(
        "cuda-virtual-package",
        "  - pytorch-gpu -> __cuda[version='>=12']\n\nYour installed version is: 11.8",
        {"wanted": ">=12", "have": "11.8", "tool": "conda"},
        "  - feature:/linux-64::__cuda==12.2=0\n\nYour installed version is: 12.2",
    ),
    # what compilers say
    Sample(
        "ptxas-too-old",
        "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
        {"target": "sm_121a"},
        "nvcc fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
    ),
    Sample(
        "nvcc-gpu-unsupported",
        "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
        {"target": "compute_120"},
        "nvcc warning : Unsupported gpu architecture 'compute_35' will be removed",
    ),
    Sample(
        "nvcc-not-found",
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install "
        "root.",
        {},
        "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
    ),
    Sample(
        "nvcc-not-found",
        "FileNotFoundError: nvcc not found at '/opt/cuda/bin/nvcc'. Ensure CUDA path '/opt/cuda' "
        "is correct.",
        {"path": "/opt/cuda/bin/nvcc"},
        "nvcc found at '/opt/cuda/bin/nvcc'",
    ),
    Sample(
        "nvcc-not-found",
        "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable "
        "to compile CUDA op(s)",
        {},
        "[WARNING] using untested triton version (3.0.0), only 1.0.0 is known to be compatible",
    ),
    Sample(
        "cxx-standard-unknown",
        "c++: error: unrecognized command line option '-std=c++20'; did you mean '-std=c++2a'?",
        {"standard": "20"},
        "g++: error: unrecognized command-line option '-fcoroutines'",
    ),
    Sample(
        "arch-list-refused",
        "ValueError: Unknown CUDA arch (9.0+PTX) or GPU not supported",
        {"arch": "9.0+PTX"},
        "UserWarning: TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are included",
    ),
    Sample(
        "ninja-not-found",
        "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
        {},
        "UserWarning: Attempted to use ninja as the BuildExtension backend but we could not find",
    ),
    Sample(
        "host-compiler-refused",
        "crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later "
        "than 12 are not supported!",
        {"compiler": "GNU", "newest": "12"},
        "GNU version 12 is supported",
    ),
    Sample(
        "host-compiler-refused",
        "RuntimeError: The current installed version of g++ (13.2.0) is greater than the maximum "
        "required version by CUDA 11.8. Please make sure to use an adequate version of g++ "
        "(>=6.0.0, <12.0).",
        {"command": "g++", "version": "13.2.0", "cuda": "11.8", "newest": "12.0"},
        "The current installed version of g++ (13.2.0) is fine for CUDA 12.8",
    ),
    Sample(
        "toolkit-differs",
        "RuntimeError: The detected CUDA version (11.8) mismatches the version that was used to "
        "compile\nPyTorch (12.8). Please make sure to use the same CUDA versions.",
        {"toolkit": "11.8", "torch": "12.8"},
        "The detected CUDA version (12.6) has a minor version mismatch with the version that was "
        "used to compile PyTorch (12.8). Most likely this shouldn't be a problem.",
    ),
    Sample(
        "extension-built-for-other",
        "xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.2+cpu)",
        {"built": "2.1.2+cu121", "cuda": "1201", "have": "2.1.2+cpu", "package": "xformers"},
        "    Python  3.10.11 (you have 3.10.6)",
    ),
    # containers
    Sample(
        "container-toolkit-failed",
        "nvidia-container-cli: error parsing IMEX info: unsupported IMEX channel value: all: "
        "unknown.",
        {"reason": "error parsing IMEX info: unsupported IMEX channel value: all: unknown."},
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8",
    ),
    Sample(
        "container-needs-newer-driver",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update "
        "your driver to a newer version",
        {"needs": "12.8"},
        "requirement error: unsatisfied condition: arch>=7.0",
    ),
    Sample(
        "container-runtime-unknown",
        'docker: Error response from daemon: could not select device driver "" with capabilities: '
        "[[gpu]].",
        {},
        'could not select device driver "" with capabilities: [[tpu]]',
    ),
    Sample(
        "runtime-dll-not-found",
        "C:\\>where msvcp140.dll\nINFO: Could not find files for the given pattern(s).",
        {"file": "msvcp140.dll"},
        "C:\\>where cl.exe\nINFO: Could not find files for the given pattern(s).",
    ),
    # what is compiled while torch runs
    Sample(
        "triton-not-found",
        "RuntimeError: Cannot find a working triton installation. Either the package is not "
        "installed or it is too old.",
        {},
        "A matching Triton is not available, some optimizations will not be enabled",
    ),
    Sample(
        "host-compiler-not-found",
        "RuntimeError: Compiler: cl is not found.",
        {"compiler": "cl"},
        "Compiler: cl (19.41), found on PATH",
    ),
    Sample(
        "host-compiler-not-found",
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or "
        "set triton.knobs.build.impl.",
        {},
        "Failed to find C compiler flags, using the defaults",
    ),
    Sample(
        "host-compiler-not-found",
        'error: Microsoft Visual C++ 14.0 or greater is required. Get it with "Microsoft C++ '
        'Build Tools"',
        {"system": "win32"},
        "Microsoft Visual C++ 14.44 is installed",
    ),
    Sample(
        "host-compiler-not-found",
        "error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
        {"compiler": "x86_64-linux-gnu-gcc"},
        "error: command 'gcc' failed with exit code 1",
    ),
    Sample(
        "python-headers-not-found",
        "/home/user/x/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory\n"
        "'-o', '/home/user/x/cuda_utils.cpython-310-x86_64-linux-gnu.so'",
        {"python": "310"},
        "fatal error: cuda.h: No such file or directory",
    ),
    Sample(
        "python-headers-not-found",
        "main.c(3): fatal error C1083: Cannot open include file: 'Python.h': No such file",
        {},
        "main.c(3): fatal error C1083: Cannot open include file: 'cuda.h': No such file",
    ),
    Sample(
        "python-headers-not-found",
        "LINK : fatal error LNK1104: cannot open file 'python311.lib'",
        {"python": "311", "system": "win32"},
        "LINK : fatal error LNK1104: cannot open file 'cuda.lib'",
    ),
    Sample(
        "extension-without-cuda",
        "CUDA SETUP: Required library version not found: libbitsandbytes_cuda114.so. Maybe you "
        "need to compile it from source?",
        {"package": "bitsandbytes", "cuda": "114"},
        "CUDA SETUP: Required library version not found: libbitsandbytes_cpu.so.",
    ),
    Sample(
        "extension-without-cuda",
        "RuntimeError: Configured CUDA binary not found at "
        "/venv/bitsandbytes/libbitsandbytes_cuda129.so",
        {"package": "bitsandbytes", "cuda": "129"},
        "Configured CUDA binary found at /x/libbitsandbytes_cuda118.so",
    ),
    Sample(
        "extension-without-cuda",
        "RuntimeError: Not compiled with GPU support",
        {},
        "AssertionError: Torch not compiled with CUDA enabled",
    ),
    Sample(
        "gpu-device-refused",
        "Unable to open /dev/kfd read-write: Permission denied",
        {"file": "/dev/kfd"},
        "Unable to open /dev/kfd read-write: No such file or directory",
    ),
    Sample(
        "gpu-device-refused",
        "PermissionError: [Errno 13] Permission denied: '/dev/dri/renderD128'",
        {"file": "/dev/dri/renderD128"},
        "PermissionError: [Errno 13] Permission denied: '/dev/shm/x'",
    ),
    Sample(
        "library-resolved",
        "\tlibnccl.so.2 => /usr/local/lib/libnccl.so.2 (0x00007f6d1c000000)",
        {"wanted": "libnccl.so.2", "library": "/usr/local/lib/libnccl.so.2"},
        "\tlibnccl.so.2 => not found",
    ),
    Sample(
        "cuda-told",
        "GPU: RTX\nCUDA version: 12.5\n",
        {"cuda": "12.5"},
        "| Driver Version: 555.42  CUDA Version: 12.5 |\nCUDA version: None",
    ),
    Sample(
        "placeholder-package",
        'Exception: You tried to install "pytorch". The package named for PyTorch is "torch"',
        {"package": "pytorch"},
        "The package named torch holds PyTorch",
    ),
    Sample(
        "wheel-tags-unmatched",
        "error: Distribution `torch==2.5.1 @ registry+https://pypi.example.org/simple` can't be "
        "installed because it doesn't have a source distribution or wheel for the current platform",
        {"requirement": "torch==2.5.1"},
        "error: Distribution `ty==0.0.1 @ registry+https://pypi.example.org/simple` can't be "
        "installed because it doesn't have a source distribution or wheel for the current platform",
    ),
    Sample(
        "no-wheel-found",
        "Looking in indexes: https://download.pytorch.org/whl/cu131\nERROR: Could not find a "
        "version that satisfies the requirement torch==2.10.0 (from versions: none)",
        {
            "requirement": "torch==2.10.0",
            "versions": "none",
            "index": "https://download.pytorch.org/whl/cu131",
        },
        "Looking in indexes: https://download.pytorch.org/whl/cu131\nCollecting torch==2.10.0",
    ),
    Sample(
        "undefined-symbol",
        "Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/"
        "libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn34layerNormFwd, version "
        "libcudnn_cnn_infer.so.8",
        {
            "family": "cudnn",
            "file": "/usr/local/cuda/lib64/libcudnn_cnn_train.so.8",
            "symbol": "_ZN5cudnn3cnn34layerNormFwd",
            "version": "libcudnn_cnn_infer.so.8",
        },
        "the symbol _ZN5cudnn3cnn34layerNormFwd is defined",
    ),
    Sample(
        "shared-library-missing",
        "python3: error while loading shared libraries: libpython3.11.so.1.0: cannot open shared "
        "object file: No such file or directory",
        {
            "library": "libpython3.11.so.1.0",
            "reason": "cannot open shared object file: No such file or directory",
        },
        "./segment: error while loading shared libraries: libtorch.so: cannot open shared object "
        "file: No such file or directory",
    ),
    Sample(
        "no-wheel-found",
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: "
        "none)",
        {"requirement": "torch", "versions": "none"},
        "ERROR: Could not find a version that satisfies the requirement torch-scatter==2.1.2 (from "
        "versions: 2.0.8)",
    ),
]
