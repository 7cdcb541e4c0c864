// The calls of HIP that the collectors listen to, one in each row: how its parameters are read, and
// its number in each of AMD's libraries, which never change the number of a call. Every user of the
// calls is expanded from here: the enumerations, the tables of the collectors, and the comparison
// with AMD's headers (tests/native/driver).
#pragma once

/// X(name without "hip", HipCallForm, number in rocprofiler-sdk, number in roctracer)
#define PROTON_HIP_CALLS(X)                                                                        \
  X(ExtLaunchKernel, kLaunch, 84, 62)                                                              \
  X(ExtLaunchMultiKernelMultiDevice, kOtherLaunch, 85, 63)                                         \
  X(LaunchByPtr, kOtherLaunch, 210, 104)                                                           \
  X(LaunchCooperativeKernel, kCooperative, 211, 105)                                               \
  X(LaunchCooperativeKernelMultiDevice, kOtherLaunch, 212, 106)                                    \
  X(LaunchKernel, kLaunch, 214, 107)                                                               \
  X(ModuleLaunchCooperativeKernel, kModule, 306, 358)                                              \
  X(ModuleLaunchCooperativeKernelMultiDevice, kOtherLaunch, 307, 359)                              \
  X(ModuleLaunchKernel, kModule, 308, 169)                                                         \
  X(ExtModuleLaunchKernel, kExtModule, 388, 65)                                                    \
  X(HccModuleLaunchKernel, kExtModule, 389, 88)                                                    \
  X(LaunchKernelExC, kLaunchEx, 474, 419)                                                          \
  X(DrvLaunchKernelEx, kDrvLaunchEx, 475, 420)                                                     \
  X(GraphLaunch, kGraphLaunch, 166, 215)                                                           \
  X(GraphAddChildGraphNode, kAddChild, 118, 252)                                                   \
  X(GraphAddKernelNode, kAddKernel, 124, 208)                                                      \
  X(GraphClone, kClone, 133, 260)                                                                  \
  X(GraphDestroy, kDestroy, 136, 212)                                                              \
  X(GraphExecDestroy, kExecDestroy, 143, 213)                                                      \
  X(GraphExecUpdate, kExecUpdate, 153, 275)                                                        \
  X(GraphInstantiate, kInstantiate, 159, 214)                                                      \
  X(GraphInstantiateWithFlags, kInstantiate, 160, 279)                                             \
  X(GraphInstantiateWithParams, kInstantiate, 438, 384)                                            \
  X(StreamBeginCapture, kBeginCapture, 333, 219)                                                   \
  X(StreamBeginCaptureToGraph, kBeginCaptureToGraph, 443, 391)                                     \
  X(StreamEndCapture, kEndCapture, 338, 220)                                                       \
  X(Memcpy, kCopy, 259, 125)                                                                       \
  X(Memcpy2D, kCopy, 260, 126)                                                                     \
  X(Memcpy2DAsync, kCopy, 261, 127)                                                                \
  X(Memcpy3D, kCopy, 266, 132)                                                                     \
  X(Memcpy3DAsync, kCopy, 267, 133)                                                                \
  X(MemcpyAsync, kCopyAsync, 268, 134)                                                             \
  X(MemcpyDtoD, kCopy, 270, 136)                                                                   \
  X(MemcpyDtoDAsync, kCopy, 271, 137)                                                              \
  X(MemcpyDtoH, kCopy, 272, 138)                                                                   \
  X(MemcpyDtoHAsync, kCopy, 273, 139)                                                              \
  X(MemcpyHtoD, kCopy, 278, 144)                                                                   \
  X(MemcpyHtoDAsync, kCopy, 279, 145)                                                              \
  X(MemcpyPeer, kCopy, 282, 148)                                                                   \
  X(MemcpyPeerAsync, kCopy, 283, 149)                                                              \
  X(MemcpyWithStream, kCopyAsync, 287, 153)                                                        \
  X(Memset, kCopy, 288, 154)                                                                       \
  X(Memset2D, kCopy, 289, 155)                                                                     \
  X(Memset2DAsync, kCopy, 290, 156)                                                                \
  X(Memset3D, kCopy, 291, 157)                                                                     \
  X(Memset3DAsync, kCopy, 292, 158)                                                                \
  X(MemsetAsync, kSetAsync, 293, 159)                                                              \
  X(MemsetD16, kCopy, 294, 160)                                                                    \
  X(MemsetD16Async, kCopy, 295, 161)                                                               \
  X(MemsetD32, kCopy, 296, 162)                                                                    \
  X(MemsetD32Async, kCopy, 297, 163)                                                               \
  X(MemsetD8, kCopy, 298, 164)                                                                     \
  X(MemsetD8Async, kCopy, 299, 165)

/// The same for calls that only rocprofiler-sdk has.
#define PROTON_HIP_SDK_CALLS(X)                                                                    \
  X(MemcpyParam2D, kCopy, 280)                                                                     \
  X(MemcpyParam2DAsync, kCopy, 281)

/// The same for calls for which no stream means that of the thread (hip..._spt): programs that are
/// compiled with -fgpu-default-stream=per-thread call these. In order of their numbers, which all
/// lie between the first and the last.
#define PROTON_HIP_THREAD_CALLS(X)                                                                 \
  X(Memcpy, kCopy, 390)                                                                            \
  X(Memcpy2D, kCopy, 393)                                                                          \
  X(Memcpy3D, kCopy, 395)                                                                          \
  X(Memset, kCopy, 396)                                                                            \
  X(MemsetAsync, kSetAsync, 397)                                                                   \
  X(Memset2D, kCopy, 398)                                                                          \
  X(Memset2DAsync, kCopy, 399)                                                                     \
  X(Memset3DAsync, kCopy, 400)                                                                     \
  X(Memset3D, kCopy, 401)                                                                          \
  X(MemcpyAsync, kCopyAsync, 402)                                                                  \
  X(Memcpy3DAsync, kCopy, 403)                                                                     \
  X(Memcpy2DAsync, kCopy, 404)                                                                     \
  X(LaunchCooperativeKernel, kCooperative, 418)                                                    \
  X(LaunchKernel, kLaunch, 419)                                                                    \
  X(GraphLaunch, kGraphLaunch, 420)                                                                \
  X(StreamBeginCapture, kBeginCapture, 421)                                                        \
  X(StreamEndCapture, kEndCapture, 422)

/// X(structure of parameters): both libraries have each, with its fields in other places.
#define PROTON_HIP_PARAMETERS(X)                                                                   \
  X(LaunchKernelParams)                                                                            \
  X(CooperativeLaunchParams)                                                                       \
  X(ModuleLaunchParams)                                                                            \
  X(ExtModuleLaunchParams)                                                                         \
  X(LaunchKernelExParams)                                                                          \
  X(DrvLaunchKernelExParams)                                                                       \
  X(GraphLaunchParams)                                                                             \
  X(StreamBeginCaptureParams)                                                                      \
  X(StreamEndCaptureParams)                                                                        \
  X(GraphInstantiateParams)                                                                        \
  X(GraphParams)                                                                                   \
  X(GraphExecUpdateParams)                                                                         \
  X(GraphCloneParams)                                                                              \
  X(GraphAddChildNodeParams)                                                                       \
  X(GraphAddKernelNodeParams)                                                                      \
  X(CopyAsyncParams)                                                                               \
  X(SetAsyncParams)
