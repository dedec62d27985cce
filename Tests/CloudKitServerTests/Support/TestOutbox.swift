import CloudKitServer
import Foundation
import Synchronization
import Testing

/// A mail server that keeps the mails for the test.
final class TestOutbox: MailSender {
  private struct State {
    var mails: [MailMessage] = []
    /// The errors for the next mails.
    var failures: [MailFailure] = []
  }

  private let state = Mutex(State())

  var mails: [MailMessage] { state.withLock { $0.mails } }

  /// The mails since the last call.
  func take() -> [MailMessage] {
    state.withLock { state in
      defer { state.mails = [] }
      return state.mails
    }
  }

  func refuse(with failures: MailFailure...) { state.withLock { $0.failures += failures } }

  func send(_ message: MailMessage) async throws(MailFailure) {
    let failure = state.withLock { state -> MailFailure? in
      guard state.failures.isEmpty else { return state.failures.removeFirst() }
      state.mails.append(message)
      return nil
    }
    if let failure { throw failure }
  }
}

extension MailMessage {
  /// The path and query of the link in it.
  func link() throws -> String {
    String(try #require(text.firstMatch(of: /https?:\/\/[^\/\s]+(\/\S*)/)?.1))
  }
}
