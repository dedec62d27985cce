import CloudKitWebServices
import Synchronization

/// Schemas read lately: every write needs one, and they rarely change.
///
/// An entry serves only while the storage says the same version.
final class SchemaCache: Sendable {
  private struct Key: Hashable {
    var container: String
    var environment: ContainerEnvironment
  }

  /// Bounds the memory; forgetting costs one decoding.
  private static let limit = 1000

  private let schemas = Mutex<[Key: StoredSchema]>([:])

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
