import CloudKitWebServices
import Synchronization

/// Recently read schemas: every write needs one, and they rarely change.
///
/// An entry is used only while the storage has the same version.
final class SchemaCache: Sendable {
  private struct Key: Hashable {
    var container: String
    var environment: ContainerEnvironment
  }

  /// The most cached schemas; a missing one costs one decoding.
  private static let limit = 1000

  private let schemas = Mutex<[Key: StoredSchema]>([:])

  func removeAll() { schemas.withLock { $0.removeAll() } }

  subscript(container: String, environment: ContainerEnvironment) -> StoredSchema? {
    get {
      schemas.withLock { $0[Key(container: container, environment: environment)] }
    }
    set {
      schemas.withLock { schemas in
        if schemas.count >= Self.limit { schemas.removeAll() }
        schemas[Key(container: container, environment: environment)] = newValue
      }
    }
  }
}
