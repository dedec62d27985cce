import Synchronization

/// The last requests of apps, in memory: bounded in number and bytes, the oldest go first.
///
/// It is lost with the process, and each server of a database has its own.
final class RequestLog: Sendable {
  private struct Line {
    var request: LoggedRequest
    /// The account that sent it, for filters: its name may change.
    var account: String?
    var size: Int
  }

  private struct State {
    /// The lines of the log; those before `first` are removed.
    var lines: [Line?] = []
    var first = 0
    var bytes = 0
    var newest: Int64 = 0

    var count: Int { lines.count - first }

    mutating func removeFirst() {
      bytes -= lines[first]?.size ?? 0
      lines[first] = nil
      first += 1
      guard first > 1024, first > lines.count / 2 else { return }
      lines.removeFirst(first)
      first = 0
    }
  }

  private let state = Mutex(State())
  /// When administrators' reads were last recorded in the audit log; milliseconds since 1970.
  private let reads = Mutex<[String: Int64]>([:])
  private let limit: Int
  private let byteLimit: Int
  /// Identifies the run of the process: numbers of another run are meaningless in this one.
  let name: String

  init(limit: Int, byteLimit: Int, name: String) {
    self.limit = limit
    self.byteLimit = byteLimit
    self.name = name
  }

  /// Adds a request, whose number is assigned here.
  func append(_ request: LoggedRequest, account: String?) {
    guard limit > 0 else { return }
    let size = request.size + (account?.utf8.count ?? 0)
    state.withLock { state in
      state.newest += 1
      var line = Line(request: request, account: account, size: size)
      line.request.number = state.newest
      state.lines.append(line)
      state.bytes += size
      while state.count > limit || (state.bytes > byteLimit && state.count > 0) {
        state.removeFirst()
      }
    }
  }

  /// Whether a reader has not read these requests of the log for an hour, which is noted.
  func isFirstRead(_ query: RequestQuery, by reader: String, at time: Int64) -> Bool {
    let anHourAgo = time - 3_600_000
    let reader = [reader, query.container ?? "", query.user ?? ""].joined(separator: "\n")
    return reads.withLock { reads in
      reads = reads.filter { $0.value > anHourAgo }
      // Names are the reader's choice: beyond a thousand, more lines are written rather than kept.
      if reads.count >= 1_000 { reads = [:] }
      guard reads[reader] == nil else { return false }
      reads[reader] = time
      return true
    }
  }

  /// The requests that match, oldest first, with their accounts, and the number to continue after.
  ///
  /// Without a number to continue after these are the newest ones. So are they after a number of another log: a reader
  /// whose requests several servers answer in turn asks each of them with the number of the one before.
  func page(
    _ query: RequestQuery,
    account: String?
  ) -> (lines: [(request: LoggedRequest, account: String?)], last: Int64) {
    let after = query.log == nil || query.log == name ? query.after : nil
    return state.withLock { state in
      let all = state.lines[state.first...].lazy.compactMap(\.self)
      let matching = all.filter { line in
        query.matches(line.request, of: line.account, account: account)
          && line.request.number > after ?? 0
      }
      let found =
        after == nil ? Array(matching.suffix(query.size)) : Array(matching.prefix(query.size))
      let isCut = after != nil && found.count == query.size
      return (
        found.map { ($0.request, $0.account) },
        isCut ? found.last?.request.number ?? 0 : state.newest
      )
    }
  }
}

extension RequestQuery {
  /// Whether a request is asked for; the user's account is nil if the name is no account's.
  fileprivate func matches(
    _ request: LoggedRequest,
    of sender: String?,
    account: String?
  ) -> Bool {
    if let container, request.container != container { return false }
    if let environment, request.environment != environment { return false }
    if let endpoint, request.endpoint != endpoint { return false }
    if let since, request.time < since { return false }
    if onlyErrors == true, !request.hasErrors { return false }
    guard let user else { return true }
    return request.user == user || (account != nil && sender == account)
  }
}
