import Dispatch
import Foundation
import Synchronization

/// A command that runs as a child of this process, with this process's terminal and streams.
///
/// `Foundation.Process` is not used: it does not say which signal ended a child that was never
/// started, and signals of this process have to reach a child that starts at the same time.
final class ChildProcess: Sendable {
  /// How the command ended.
  enum End: Hashable, Sendable {
    case exit(Int32)
    /// A signal ended it.
    case signal(Int32)
  }

  /// Why the command could not be started.
  struct StartFailure: Error, Hashable {
    var command: String
    var code: Int32

    /// The exit code of shells and `env`: 127 if there is no such command, 126 if it cannot run.
    var exitCode: Int32 { code == ENOENT ? 127 : 126 }
    var reason: String { String(cString: strerror(code)) }
  }

  private struct State {
    /// Nil before the start and after the end, when the number may belong to another process.
    var child: pid_t?
    /// The first signal that came before the child was there.
    var early: Int32?
  }

  private final class Sources: @unchecked Sendable {
    // Unchecked: dispatch sources may be used from any thread, and are not declared so.
    var all: [any DispatchSourceSignal] = []
  }

  /// The signals with which a supervisor, a terminal or another program ends or notifies a command.
  private static let relayed = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]

  private let state = Mutex(State())
  /// The file descriptors open at launch, which the command inherits; the server's own are opened later.
  private let inherited = ChildProcess.openDescriptors()
  private let sources = Sources()

  /// Keeps signals from ending this process from now on.
  init() {
    let queue = DispatchQueue(label: "watershed exec signals")
    sources.all = Self.relayed.map { number in
      // Else the signal would end this process, and leave the child and the server's folder behind.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { [weak self] in self?.relay(number) }
      return source
    }
    for source in sources.all { source.resume() }
  }

  deinit { for source in sources.all { source.cancel() } }

  /// The signal that came before a command was started, which is then not started.
  var earlySignal: Int32? { state.withLock { $0.early } }

  private func relay(_ number: Int32) {
    state.withLock { state in
      guard let child = state.child else {
        state.early = state.early ?? number
        return
      }
      // A terminal sends these to every process of its foreground group, the child included.
      guard ![SIGINT, SIGQUIT].contains(number) || !Self.isInForeground else { return }
      _ = kill(child, number)
    }
  }

  /// Whether this process belongs to the group that its terminal sends Ctrl-C to.
  private static var isInForeground: Bool {
    let terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC)
    guard terminal >= 0 else { return false }
    defer { close(terminal) }
    return tcgetpgrp(terminal) == getpgrp()
  }

  /// Runs a command that is looked for in `PATH`, and waits for its end on a thread of its own.
  ///
  /// - Returns: How it ended; the signal, where one came before the start.
  /// - Throws: `StartFailure`.
  func run(_ command: [String], environment: [String: String]) async throws -> End {
    let child = try state.withLock { state -> pid_t? in
      guard state.early == nil else { return nil }
      keepOwnDescriptors()
      let child = try Self.spawn(command, environment)
      state.child = child
      return child
    }
    guard let child else { return .signal(earlySignal ?? SIGTERM) }
    return await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in continuation.resume(returning: wait(for: child)) }
    }
  }

  private static func openDescriptors() -> Set<Int32> {
    #if os(Linux)
    let folder = "/proc/self/fd"
    #else
    let folder = "/dev/fd"
    #endif
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return Set(names.compactMap { Int32($0) })
  }

  /// Closes what this process opened itself in the command: libraries open sockets that would keep the
  /// server's port, were the command to outlive it.
  private func keepOwnDescriptors() {
    for descriptor in Self.openDescriptors() where !inherited.contains(descriptor) {
      let flags = fcntl(descriptor, F_GETFD)
      if flags >= 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
    }
  }

  private func wait(for child: pid_t) -> End {
    var information = siginfo_t()
    // The child stays a zombie, so that no signal is sent to another process with its number.
    while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    state.withLock { $0.child = nil }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    // WIFEXITED, WEXITSTATUS and WTERMSIG are macros, which Swift does not import.
    let signal = status & 0x7f
    return signal == 0 ? .exit((status >> 8) & 0xff) : .signal(signal)
  }

  private static func spawn(
    _ command: [String],
    _ environment: [String: String]
  ) throws -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Ignored signals stay ignored in a child, which does not expect that.
    var standard = sigset_t()
    sigemptyset(&standard)
    for number in relayed + [SIGPIPE] { sigaddset(&standard, number) }
    posix_spawnattr_setsigdefault(&attributes, &standard)
    var blocked = sigset_t()
    sigemptyset(&blocked)
    posix_spawnattr_setsigmask(&attributes, &blocked)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETSIGDEF) | Int16(POSIX_SPAWN_SETSIGMASK)
    )
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] =
      environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var child: pid_t = 0
    let code = posix_spawnp(&child, command[0], nil, &attributes, &arguments, &variables)
    guard code == 0 else { throw StartFailure(command: command[0], code: code) }
    return child
  }

  /// Ends this process as the command ended, so that a caller sees the same.
  static func end(like end: End) -> Never {
    switch end {
    case .exit(let code): exit(code)
    case .signal(let number):
      // The core that there may be is the command's.
      var limit = rlimit(rlim_cur: 0, rlim_max: 0)
      #if canImport(Glibc)
      _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
      #else
      _ = setrlimit(RLIMIT_CORE, &limit)
      #endif
      signal(number, SIG_DFL)
      var only = sigset_t()
      sigemptyset(&only)
      sigaddset(&only, number)
      pthread_sigmask(SIG_UNBLOCK, &only, nil)
      raise(number)
      // A signal whose default is to be ignored.
      exit(128 + number)
    }
  }
}
