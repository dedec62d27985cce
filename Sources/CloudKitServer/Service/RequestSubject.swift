import CloudKitWebServices
import Synchronization

/// The sender of the current request, for the log line of a refusal.
final class RequestSubject: Sendable {
  /// Of the request that the task answers.
  @TaskLocal static var current: RequestSubject?

  private let name = Mutex<String?>(nil)

  /// The record name of the person or key; nil where there is none, or none that is known.
  var user: String? {
    get { name.withLock { $0 } }
    set { name.withLock { $0 = newValue } }
  }
}
