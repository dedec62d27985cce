import Foundation

/// PostgreSQL's C client library, loaded when the first connection is opened.
///
/// It is not linked, so that apps, their tests and servers on SQLite need neither the library nor
/// its headers; it brings about twenty other libraries with it. The declarations below follow
/// `libpq-fe.h` and libpq's documentation; they have been stable since PostgreSQL 14, and the
/// library's `soname` has been `libpq.so.5` since 2006.
package final class LibPQ: @unchecked Sendable {
  // Unchecked: immutable addresses of functions.

  /// A connection, `PGconn *`.
  typealias Connection = OpaquePointer
  /// A result, `PGresult *`.
  typealias Answer = OpaquePointer
  typealias Text = UnsafePointer<CChar>
  typealias Texts = UnsafePointer<UnsafePointer<CChar>?>
  typealias NoticeProcessor = @convention(c) (UnsafeMutableRawPointer?, Text?) -> Void

  /// `ConnStatusType`.
  enum ConnectionStatus { static let ok: Int32 = 0 }

  /// `ExecStatusType`.
  enum ResultStatus {
    static let commandOK: Int32 = 1
    static let tuplesOK: Int32 = 2
    static let pipelineSync: Int32 = 10
    static let pipelineAborted: Int32 = 11
  }

  /// Field codes of `PQresultErrorField`, from `postgres_ext.h`.
  enum DiagnosticField {
    static let sqlState = Int32(UInt8(ascii: "C"))
    static let primaryMessage = Int32(UInt8(ascii: "M"))
  }

  let connectdbParams: @convention(c) (Texts, Texts, Int32) -> Connection?
  let status: @convention(c) (Connection) -> Int32
  let finish: @convention(c) (Connection) -> Void
  let errorMessage: @convention(c) (Connection) -> Text
  let setNoticeProcessor:
    @convention(c) (Connection, NoticeProcessor, UnsafeMutableRawPointer?) -> UnsafeRawPointer?
  let socket: @convention(c) (Connection) -> Int32

  let enterPipelineMode: @convention(c) (Connection) -> Int32
  let exitPipelineMode: @convention(c) (Connection) -> Int32
  let pipelineSync: @convention(c) (Connection) -> Int32
  let flush: @convention(c) (Connection) -> Int32
  let exec: @convention(c) (Connection, Text) -> Answer?
  let sendPrepare: @convention(c) (Connection, Text, Text, Int32, UnsafePointer<UInt32>?) -> Int32
  let sendQueryPrepared:
    @convention(c) (
      Connection, Text, Int32, Texts, UnsafePointer<Int32>, UnsafePointer<Int32>, Int32
    ) -> Int32
  let sendQueryParams:
    @convention(c) (
      Connection, Text, Int32, UnsafePointer<UInt32>?, Texts, UnsafePointer<Int32>,
      UnsafePointer<Int32>, Int32
    ) -> Int32

  let getResult: @convention(c) (Connection) -> Answer?
  let resultStatus: @convention(c) (Answer?) -> Int32
  let resultErrorField: @convention(c) (Answer?, Int32) -> Text?
  let resultErrorMessage: @convention(c) (Answer?) -> Text
  let ntuples: @convention(c) (Answer) -> Int32
  let getvalue: @convention(c) (Answer, Int32, Int32) -> UnsafeMutablePointer<CChar>?
  let getlength: @convention(c) (Answer, Int32, Int32) -> Int32
  let getisnull: @convention(c) (Answer, Int32, Int32) -> Int32
  let clear: @convention(c) (Answer?) -> Void

  let consumeInput: @convention(c) (Connection) -> Int32
  let isBusy: @convention(c) (Connection) -> Int32
  let setNonblocking: @convention(c) (Connection, Int32) -> Int32
  private let notifies: @convention(c) (Connection) -> UnsafeMutableRawPointer?
  private let freemem: @convention(c) (UnsafeMutableRawPointer) -> Void

  let getCancel: @convention(c) (Connection) -> OpaquePointer?
  let cancel: @convention(c) (OpaquePointer, UnsafeMutablePointer<CChar>, Int32) -> Int32
  let freeCancel: @convention(c) (OpaquePointer) -> Void

  private static let loaded = Result { try LibPQ(names: names) }

  #if canImport(Darwin)
  private static let names = [
    "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib",
    "/usr/local/opt/libpq/lib/libpq.5.dylib",
  ]
  #else
  private static let names = ["libpq.so.5"]
  #endif

  /// The library of this process; the first call loads it.
  static func shared() throws -> LibPQ { try loaded.get() }

  /// Loads the first library that the system finds; it stays loaded.
  package init(names: [String]) throws {
    var reasons: [String] = []
    var found: UnsafeMutableRawPointer?
    for name in names where found == nil {
      found = dlopen(name, RTLD_NOW | RTLD_LOCAL)
      if found == nil { reasons.append(Self.loaderError()) }
    }
    guard let library = found else {
      throw PostgreSQLError(
        state: PostgreSQLError.missingLibrary,
        message:
          "PostgreSQL's client library cannot be loaded (on Debian: apt-get install libpq5): "
          + reasons.joined(separator: "; ")
      )
    }
    func function<Function>(
      _ name: String,
      as type: Function.Type = Function.self
    ) throws
      -> Function
    {
      guard let address = dlsym(library, name) else {
        throw PostgreSQLError(
          state: PostgreSQLError.missingLibrary,
          message: "PostgreSQL's client library has no \(name); version 14 or later is needed"
        )
      }
      return unsafeBitCast(address, to: type)
    }
    connectdbParams = try function("PQconnectdbParams")
    status = try function("PQstatus")
    finish = try function("PQfinish")
    errorMessage = try function("PQerrorMessage")
    setNoticeProcessor = try function("PQsetNoticeProcessor")
    socket = try function("PQsocket")
    enterPipelineMode = try function("PQenterPipelineMode")
    exitPipelineMode = try function("PQexitPipelineMode")
    pipelineSync = try function("PQpipelineSync")
    flush = try function("PQflush")
    exec = try function("PQexec")
    sendPrepare = try function("PQsendPrepare")
    sendQueryPrepared = try function("PQsendQueryPrepared")
    sendQueryParams = try function("PQsendQueryParams")
    getResult = try function("PQgetResult")
    resultStatus = try function("PQresultStatus")
    resultErrorField = try function("PQresultErrorField")
    resultErrorMessage = try function("PQresultErrorMessage")
    ntuples = try function("PQntuples")
    getvalue = try function("PQgetvalue")
    getlength = try function("PQgetlength")
    getisnull = try function("PQgetisnull")
    clear = try function("PQclear")
    consumeInput = try function("PQconsumeInput")
    isBusy = try function("PQisBusy")
    setNonblocking = try function("PQsetnonblocking")
    notifies = try function("PQnotifies")
    freemem = try function("PQfreemem")
    getCancel = try function("PQgetCancel")
    cancel = try function("PQcancel")
    freeCancel = try function("PQfreeCancel")
  }

  private static func loaderError() -> String {
    dlerror().map { String(cString: $0) } ?? "unknown reason"
  }

  /// The payload of the next notification that has arrived; nil if there is none.
  func nextNotification(_ connection: Connection) -> String? {
    guard let notification = notifies(connection) else { return nil }
    defer { freemem(notification) }
    // `PGnotify`: the channel's name, the process ID padded to a pointer's size, the payload.
    let payload = notification.load(
      fromByteOffset: 2 * MemoryLayout<UnsafeRawPointer>.stride,
      as: UnsafePointer<CChar>?.self
    )
    return payload.map { String(cString: $0) } ?? ""
  }
}
