import Effects
import Foundation

/// The file of a binary store: a binary property list with the metadata and the objects.
///
/// The format is our own: Core Data's is not documented.
struct BinaryStoreFile {
  /// The objects of one entity.
  struct Entity {
    var name: String
    /// The reference by which the store knows each object.
    var references: [Any]
    /// The values of each object by property name.
    var values: [[String: Any]]
  }

  var metadata: [String: Any]
  var entities: [Entity]
  /// The model that the objects were written with, encoded as in SQLite stores; older files have
  /// none.
  var model: Data?
  /// The highest key that an object has had, so that the key of a deleted one is not used again; older
  /// files have none, and older releases ignore it.
  var lastReference: Int64?

  private static let format = "WatershedBinaryStore"
  private static let formatVersion = 1

  init(
    metadata: [String: Any],
    entities: [Entity],
    model: Data?,
    lastReference: Int64? = nil
  ) {
    self.metadata = metadata
    self.entities = entities
    self.model = model
    self.lastReference = lastReference
  }

  /// Returns nil where there is no file, or an empty one that reserves the path.
  static func read(_ url: URL) throws -> BinaryStoreFile? {
    let data: Data
    do {
      if try FileSystem.look(at: url.path) == .folder { throw damaged(url, "it is a folder") }
      guard let found = try FileSystem.contents(of: url.path) else { return nil }
      data = found
    } catch let error as CocoaError {
      throw unreadable(url, error)
    }
    if data.isEmpty { return nil }
    let list: Any
    do {
      list = try PropertyListSerialization.propertyList(from: data, format: nil)
    } catch {
      throw damaged(url, "it is no property list", cause: error)
    }
    guard let root = list as? [String: Any], root["format"] as? String == format,
      let version = root["version"] as? Int, let metadata = root["metadata"] as? [String: Any],
      let entities = root["entities"] as? [String: Any]
    else { throw damaged(url, "it is another kind of property list") }
    guard version <= formatVersion else {
      throw StoreError(
        .incompatibleSchema,
        "The store at \(url.path) has the format \(version); this release reads up to "
          + "\(formatVersion).",
        remedy: "Update the app.",
        context: [NSFilePathErrorKey: url.path]
      )
    }
    return BinaryStoreFile(
      metadata: metadata,
      entities: try entities.sorted { $0.key < $1.key }.map { name, value in
        guard let parts = value as? [String: Any], let references = parts["references"] as? [Any],
          let values = parts["values"] as? [[String: Any]], values.count == references.count
        else { throw damaged(url, "the objects of \(name) are not there") }
        return Entity(name: name, references: references, values: values)
      },
      model: root["model"] as? Data,
      lastReference: (root["lastReference"] as? NSNumber)?.int64Value
    )
  }

  /// Writes a new file and renames it over the old one; writes nothing for the null device.
  func write(to url: URL) throws {
    guard try StorePlace.hasFile(at: url) else { return }
    var objects: [String: Any] = [:]
    for entity in entities {
      objects[entity.name] = ["references": entity.references, "values": entity.values]
    }
    var root: [String: Any] = [
      "format": Self.format, "version": Self.formatVersion, "metadata": metadata,
      "entities": objects,
    ]
    root["model"] = model
    root["lastReference"] = lastReference.map { NSNumber(value: $0) }
    do {
      let data = try PropertyListSerialization.data(
        fromPropertyList: root,
        format: .binary,
        options: 0
      )
      try FileSystem.save(data, to: url.resolvingSymlinksInPath().path)
    } catch {
      throw Self.unwritable(url, error)
    }
  }

  // MARK: Errors

  static func missing(_ url: URL) -> StoreError {
    StoreError(
      .fileReadNoSuchFile,
      "There is no store at \(url.path).",
      remedy: "Check the URL.",
      context: [NSFilePathErrorKey: url.path]
    )
  }

  static func damaged(
    _ url: URL,
    _ reason: String,
    cause: (any Error)? = nil
  ) -> StoreError {
    StoreError(
      .fileReadCorrupt,
      "The file at \(url.path) is not a binary store: \(reason).",
      remedy: "Choose another place for the store, or restore the file from a backup.",
      context: [NSFilePathErrorKey: url.path],
      cause: cause
    )
  }

  private static func unreadable(_ url: URL, _ error: any Error) -> StoreError {
    let code =
      (error as NSError).code == 257 ? StoreError.Code.fileReadNoPermission : .fileReadUnknown
    return StoreError(
      code,
      "The store at \(url.path) cannot be read.",
      remedy: "Check the permissions of the file and of its folder.",
      context: [NSFilePathErrorKey: url.path],
      cause: error
    )
  }

  private static func unwritable(_ url: URL, _ error: any Error) -> StoreError {
    let code = StoreError.Code(rawValue: (error as NSError).code) ?? .fileWriteUnknown
    return StoreError(
      code,
      "The store at \(url.path) cannot be written; the file is as it was.",
      remedy: "Check the permissions of the folder and the space on the disk.",
      context: [NSFilePathErrorKey: url.path],
      cause: error
    )
  }
}
