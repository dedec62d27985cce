import Foundation
import Synchronization

/// The version hashes of stores that Core Data has written, in our own computation.
///
/// How Core Data hashes derived and composite attributes is not documented. A store carries its model:
/// the hash that we compute for the carried entity stands for the one in the store's metadata. The
/// metadata that an app compares a model with are noted when a store's file is read.
enum ForeignHashes {
  /// An app compares a store's metadata right after it has read them.
  private static let limit = 16

  private struct Note {
    let hashes: [String: Data]
    let modelCache: Data
    /// The hashes with our own; nil until they are asked for.
    var translated: [String: Data]?
  }

  private static let notes = Mutex<[Note]>([])

  /// Notes the hashes of a store, and the model that it carries.
  static func note(_ hashes: [String: Data], modelCache: Data) {
    notes.withLock { notes in
      notes.removeAll { $0.hashes == hashes }
      notes.append(Note(hashes: hashes, modelCache: modelCache))
      if notes.count > limit { notes.removeFirst() }
    }
  }

  /// The hashes with our own for the entities that have derived or composite attributes, as far as the
  /// model of the store is known.
  static func translated(_ hashes: [String: Data]) -> [String: Data] {
    notes.withLock { notes in
      guard let place = notes.firstIndex(where: { $0.hashes == hashes }) else { return hashes }
      if let translated = notes[place].translated { return translated }
      let translated = translate(hashes, notes[place].modelCache)
      notes[place].translated = translated
      return translated
    }
  }

  private static func translate(_ hashes: [String: Data], _ modelCache: Data) -> [String: Data] {
    // Without a model that can be read, the stored hashes decide.
    guard let model = try? ModelArchive.model(fromModelCache: modelCache) else { return hashes }
    var result = hashes
    for (name, entity) in model.entitiesByName where result[name] != nil && entity.hasUnknownDigest
    {
      result[name] = entity.versionHash
    }
    return result
  }
}

extension NSEntityDescription {
  /// Whether the entity has, or inherits, an attribute whose digest is not Core Data's.
  var hasUnknownDigest: Bool {
    attributesByName.values.contains {
      $0 is NSDerivedAttributeDescription || $0 is NSCompositeAttributeDescription
    }
  }
}
