import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit

/// Why a command did not succeed: what, why, and what to do next, each in a line.
struct CommandFailure: Error, Hashable {
  /// A stable name for programs; `watershed explain` tells more of it.
  var code: String
  var what: String
  var why: String
  var next: String
  var exitCode: Int32

  init(_ code: String, what: String, why: String, next: String, exit: Int32 = 1) {
    self.code = code
    self.what = what
    self.why = why
    self.next = next
    exitCode = exit
  }

  /// The three lines.
  var text: String {
    """
    error: \(what) [\(code)]
      why: \(why)
      next: \(next)

    """
  }
}

/// Exit codes beside 0 and 1, for scripts.
enum ExitCodes {
  /// The command ran and found a difference or a problem.
  static let found: Int32 = 2
  static let usage: Int32 = 64
  static let unreachable: Int32 = 69
  static let bug: Int32 = 70
  static let outputFailed: Int32 = 74
  static let retry: Int32 = 75
  static let notAuthorised: Int32 = 77
  static let interrupted: Int32 = 130
  /// As shells report a program that SIGPIPE ended.
  static let closedPipe: Int32 = 141
}

extension CommandFailure {
  /// What a reply of the server means for the command.
  init(_ error: ErrorDictionary, doing what: String) {
    let why = error.reason ?? error.serverErrorCode.rawValue
    let code = error.serverErrorCode.rawValue
    switch error.serverErrorCode {
    case .authenticationRequired:
      self.init(
        code,
        what: what,
        why: why,
        next: "name the person with --user, or give --user-token",
        exit: ExitCodes.notAuthorised
      )
    case .authenticationFailed, .accessDenied:
      self.init(
        code,
        what: what,
        why: why,
        next:
          "give the right token with --token, sign in with watershed login, or run the command beside the server's --data",
        exit: ExitCodes.notAuthorised
      )
    case .throttled, .tryAgainLater:
      let wait = error.retryAfter.map { " in \(Int($0.rounded(.up))) seconds" } ?? " later"
      self.init(code, what: what, why: why, next: "try again\(wait)", exit: ExitCodes.retry)
    case .internalError:
      self.init(
        code,
        what: what,
        why: why,
        next: "read the server's log about the request \(error.uuid ?? "")",
        exit: ExitCodes.bug
      )
    default:
      self.init(code, what: what, why: why, next: "watershed explain \(code)")
    }
  }

  /// In words, where the HTTP library gives the name of a case.
  private static func plain(_ reason: String) -> String {
    let words = [
      "readTimeout": "the server did not answer in time",
      "connectTimeout": "no connection came about in time",
      "deadlineExceeded": "the server did not answer in time",
      "remoteConnectionClosed": "the server closed the connection before its answer was whole",
    ]
    return words.first { reason.contains($0.key) }?.value ?? reason
  }

  /// Where nothing better is known.
  static let doctor = "watershed doctor"

  /// Any error as three lines.
  init(_ error: any Error, doing what: String) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as ErrorDictionary: self.init(error, doing: what)
    case let error as TransportError:
      self.init(
        "SERVER_UNREACHABLE",
        what: what,
        why: Self.plain(error.reason),
        next: "is the server running? watershed doctor",
        exit: ExitCodes.unreachable
      )
    case let error as CloudKitService.AdministrationError:
      self.init("BAD_REQUEST", what: what, why: error.description, next: "watershed --help")
    case let error as BackupError:
      let next = "take another backup or another folder: watershed help backup"
      self.init("FAILED", what: what, why: error.description, next: next)
    case let error as ServeError:
      self.init("UNUSABLE_DATA", what: what, why: error.description, next: Self.doctor)
    case let error as CocoaError:
      // What the system said, without Foundation's frame around it.
      self.init("FAILED", what: what, why: error.localizedDescription, next: Self.doctor)
    default:
      self.init("FAILED", what: what, why: "\(error)", next: Self.doctor)
    }
  }
}
