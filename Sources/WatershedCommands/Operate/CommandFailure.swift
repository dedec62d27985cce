import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit

/// Why a command failed: what, why, and the next step, one line each.
struct CommandFailure: Error, Hashable {
  /// A stable code for programs; `watershed explain` describes it.
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

/// Exit codes besides 0 and 1, for scripts.
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
  /// The code with which shells report a program ended by SIGPIPE.
  static let closedPipe: Int32 = 141
}

extension CommandFailure {
  /// The failure for an error of the server.
  init(_ error: ErrorDictionary, doing what: String) {
    let why = error.reason ?? error.serverErrorCode.rawValue
    let code = error.serverErrorCode.rawValue
    switch error.serverErrorCode {
    case .authenticationRequired:
      self.init(
        code,
        what: what,
        why: why,
        next: "name the user with --user, or give --user-token",
        exit: ExitCodes.notAuthorised
      )
    case .accessDenied where why == CloudKitService.backupRight:
      self.init(
        code,
        what: what,
        why: why,
        next: "give the content of the file admin-token of the server's data folder with --token",
        exit: ExitCodes.notAuthorised
      )
    case .accessDenied:
      // The token is good, or the server would not know the caller.
      self.init(
        code,
        what: what,
        why: why,
        next:
          "act as a user who may: the creator or a member of a role with --user, or an administrator for the admin API; watershed schema export lists the grants",
        exit: ExitCodes.notAuthorised
      )
    case .authenticationFailed:
      self.init(
        code,
        what: what,
        why: why,
        next:
          "give the right token with --token, sign in with watershed login, or run the command beside the server's --data",
        exit: ExitCodes.notAuthorised
      )
    case .throttled, .tryAgainLater:
      let wait =
        error.retryAfter.map { " in " + Count.of(Int($0.rounded(.up)), "second") }
        ?? " later"
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
      let next = Self.remedy(error.serverErrorCode, why) ?? "watershed explain \(code)"
      self.init(code, what: what, why: why, next: next)
    }
  }

  /// The command that helps.
  private static func remedy(_ code: ServerErrorCode, _ why: String) -> String? {
    if code == .zoneNotFound { return "watershed zones list" }
    if why == "Subscription not found" { return "watershed subscriptions list" }
    if why.hasPrefix("There is no container") { return "watershed containers list" }
    if why.hasPrefix("There is no account") { return "watershed users list" }
    if why.hasPrefix("Did not find record type") { return "watershed schema export" }
    if why.hasPrefix("This sign-in no longer exists") { return "watershed sessions list NAME" }
    if why.hasPrefix("There is no such API token") { return "watershed tokens list" }
    if why.contains("defined to be: ENCRYPTED_") {
      return #"add "isEncrypted": true to the field, beside its type and value"#
    }
    guard let missing = MissingIndex.index(why) else { return nil }
    return "watershed schema add-index --container-id ID --record-type TYPE --field "
      + "\(missing.field) --index \(missing.index)"
  }

  /// A sentence, if the HTTP library's text is the name of a case.
  private static func plain(_ reason: String) -> String {
    let words = [
      "readTimeout": "the server did not answer in time",
      "connectTimeout": "no connection was established in time",
      "deadlineExceeded": "the server did not answer in time",
      "remoteConnectionClosed": "the server closed the connection before its response was complete",
    ]
    if let known = words.first(where: { reason.contains($0.key) }) { return known.value }
    guard reason.contains("handshakeFailed") else { return reason }
    return reason.contains("CERTIFICATE_VERIFY_FAILED")
      ? untrusted
      : "the server does not speak https at this address"
  }

  private static let untrusted = "this machine does not trust the server's certificate"

  /// The failure of a command that reads a model.
  init(unreadableModel error: any Error) {
    self.init(
      "UNREADABLE_FILE",
      what: "the model cannot be read",
      why: "\(error)",
      next: "name an .xcdatamodeld, an .xcdatamodel or a compiled model",
      exit: ExitCodes.found
    )
  }

  /// The next step if no better one is known.
  static let doctor = "watershed doctor"

  /// Converts any error to three lines.
  init(_ error: any Error, doing what: String) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as ErrorDictionary: self.init(error, doing: what)
    case let error as MissingIndex: self = error.failure(doing: what)
    case let error as TransportError:
      let why = Self.plain(error.reason)
      self.init(
        "SERVER_UNREACHABLE",
        what: what,
        why: why,
        next: why == Self.untrusted
          ? "check the name in --server, and install the certificate's issuer on this machine"
          : "is the server running? watershed doctor",
        exit: ExitCodes.unreachable
      )
    case let error as UnreadablePlace:
      self.init(
        "UNUSABLE_DATA",
        what: what,
        why: error.description,
        next: "run the command as root or as the server's user: sudo watershed …"
      )
    case let error as ForeignFile:
      self.init(
        "UNUSABLE_DATA",
        what: what,
        why: error.description,
        next: "run the command as root or as the server's user: sudo watershed …"
      )
    case let error as AdministrationError:
      self.init("BAD_REQUEST", what: what, why: error.description, next: "watershed --help")
    case let error as BackupError:
      let next = "choose another backup or another folder: watershed help backup"
      self.init("FAILED", what: what, why: error.description, next: next)
    case let error as ServeError:
      self.init("UNUSABLE_DATA", what: what, why: error.description, next: Self.doctor)
    case let error as CocoaError:
      self.init("FAILED", what: what, why: error.systemReason, next: Self.doctor)
    default:
      self.init("FAILED", what: what, why: "\(error)", next: Self.doctor)
    }
  }
}
