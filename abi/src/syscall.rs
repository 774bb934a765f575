//! System-call numbers (in `a7`, signed). The list is seL4's master list: an option that is off removes a call, but never renumbers
//! the others.

/// `seL4_Call`: send, then wait for the reply.
pub const CALL: isize = -1;
/// `seL4_ReplyRecv`: reply to the caller, then receive.
pub const REPLY_RECV: isize = -2;
/// `seL4_Send`.
pub const SEND: isize = -3;
/// `seL4_NBSend`.
pub const NB_SEND: isize = -4;
/// `seL4_Recv`, also `seL4_Wait`.
pub const RECV: isize = -5;
/// `seL4_Reply`.
pub const REPLY: isize = -6;
/// `seL4_Yield`.
pub const YIELD: isize = -7;
/// `seL4_NBRecv`, also `seL4_Poll`.
pub const NB_RECV: isize = -8;
/// `seL4_DebugPutChar`; exists with printing.
pub const DEBUG_PUT_CHAR: isize = -9;
/// `seL4_DebugDumpScheduler`; exists with printing.
pub const DEBUG_DUMP_SCHEDULER: isize = -10;
/// `seL4_DebugHalt`; exists in debug configurations, as the calls down to `DEBUG_GET_THREAD_AFFINITY`.
pub const DEBUG_HALT: isize = -11;
/// `seL4_DebugCapIdentify`.
pub const DEBUG_CAP_IDENTIFY: isize = -12;
/// `seL4_DebugSnapshot`.
pub const DEBUG_SNAPSHOT: isize = -13;
/// `seL4_DebugNameThread`.
pub const DEBUG_NAME_THREAD: isize = -14;
/// `seL4_DebugSendIPI`; SMP only.
pub const DEBUG_SEND_IPI: isize = -15;
/// `seL4_DebugGetThreadAffinity`; SMP only.
pub const DEBUG_GET_THREAD_AFFINITY: isize = -16;
/// `seL4_BenchmarkFlushCaches`; exists in benchmark configurations, as the calls down to `BENCHMARK_NULL_SYSCALL`.
pub const BENCHMARK_FLUSH_CACHES: isize = -18;
/// `seL4_BenchmarkResetLog`.
pub const BENCHMARK_RESET_LOG: isize = -19;
/// `seL4_BenchmarkFinalizeLog`.
pub const BENCHMARK_FINALIZE_LOG: isize = -20;
/// `seL4_BenchmarkSetLogBuffer`.
pub const BENCHMARK_SET_LOG_BUFFER: isize = -21;
/// `seL4_BenchmarkNullSyscall`.
pub const BENCHMARK_NULL_SYSCALL: isize = -22;
/// `seL4_BenchmarkGetThreadUtilisation`; exists where utilisation is tracked, as the following.
pub const BENCHMARK_GET_THREAD_UTILISATION: isize = -23;
/// `seL4_BenchmarkResetThreadUtilisation`.
pub const BENCHMARK_RESET_THREAD_UTILISATION: isize = -24;
/// `seL4_BenchmarkDumpAllThreadsUtilisation`; debug configurations only, as the next.
pub const BENCHMARK_DUMP_ALL_THREADS_UTILISATION: isize = -25;
/// `seL4_BenchmarkResetAllThreadsUtilisation`.
pub const BENCHMARK_RESET_ALL_THREADS_UTILISATION: isize = -26;
