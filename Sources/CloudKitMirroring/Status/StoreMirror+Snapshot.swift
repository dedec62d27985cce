import Foundation
import OpenCoreData

extension StoreMirror {
  /// Every object of the store by its record name, with fields and links as texts: two synchronized
  /// devices have equal snapshots.
  ///
  /// Objects without a record name are under their entity and key.
  package func snapshot() throws -> [String: [String: String]] {
    // History is folded first, so that every object has its name.
    try writeFolded(MirrorAuthor.setup) { session in
      var result: [String: [String: String]] = [:]
      for name in context.mapping.entityNames {
        guard let entity = context.mapping.entity(named: name) else { continue }
        var key: Int64 = 0
        while true {
          let references = try session.rows.references(entityName: name, after: key, limit: 500)
          for reference in references {
            key = reference.key
            let record = try session.recordName(of: reference) ?? "\(name)/\(reference.key)"
            result[record] = try session.texts(of: reference, entity)
          }
          if references.count < 500 { break }
        }
      }
      return result
    }
  }
}

extension MirrorSession {
  fileprivate func texts(
    of reference: RowReference,
    _ entity: EntityMapping
  ) throws -> [String: String] {
    guard let row = try rows.row(reference) else { return [:] }
    let serialized = try serialize(row, entity)
    var texts: [String: String] = [:]
    for (key, value) in serialized.fields.values {
      if let print = value.fingerprint, value.byteCount > 64 || serialized.fileContents[key] != nil
      {
        texts[key] = "\(print.size) bytes \(print.digest.base64EncodedString())"
      } else {
        texts[key] = "\(value)"
      }
    }
    for relationship in entity.manyToManys {
      let names = try rows.destinations(of: relationship.description, from: reference)
        .map { try recordName(of: $0) ?? "?" }
      if !names.isEmpty { texts[relationship.name] = names.sorted().joined(separator: ", ") }
    }
    return texts
  }
}
