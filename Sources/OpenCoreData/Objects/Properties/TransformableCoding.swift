import Foundation
import Synchronization

/// Transformable and object values to the bytes of a row and back.
enum TransformableCoding {
  /// The bytes of a value; nil where it has none.
  ///
  /// An attribute whose transformer is missing has none: an archive in its place could be read neither
  /// by the app's other devices nor by this one, once the transformer is registered.
  static func encode(_ value: Any, of slot: AttributeSlot) -> RowValue? {
    guard slot.type != .undefinedAttributeType, slot.namesTransformer else {
      return TransformableArchive.archive(value, classes: nil).map(RowValue.data)
    }
    guard let transformer = transformer(of: slot) else { return nil }
    // Apple's built-in transformers unarchive in the forward direction, an app's own archive.
    let bytes =
      transformer is NSSecureUnarchiveFromDataTransformer
      ? transformer.reverseTransformedValue(value) : transformer.transformedValue(value)
    return (bytes as? Data).map(RowValue.data)
  }

  static func decode(_ data: Data, of slot: AttributeSlot) -> Any? {
    guard let transformer = transformer(of: slot) else {
      return TransformableArchive.unarchive(data, classes: nil)
    }
    guard !(transformer is NSSecureUnarchiveFromDataTransformer) else {
      return transformer.transformedValue(data)
    }
    // Earlier releases archived values where the transformer's class was not registered. No other classes are
    // read so than those of Foundation's own values: the transformer may refuse some on purpose.
    return transformer.reverseTransformedValue(data)
      ?? TransformableArchive.unarchive(data, classes: Array(ArchivedValueReader.classes.values))
  }

  /// The bytes of a value in a row that is no store's: an archive where the transformer is missing.
  static func encodeForMemory(_ value: Any, of slot: AttributeSlot) -> RowValue? {
    if slot.namesTransformer, transformer(of: slot) == nil {
      return TransformableArchive.archive(value, classes: nil).map(RowValue.data)
    }
    return encode(value, of: slot)
  }

  /// Why a value of an attribute cannot be encoded.
  static func refusal(of slot: AttributeSlot) -> String {
    guard slot.type != .undefinedAttributeType, slot.namesTransformer, transformer(of: slot) == nil
    else { return "The value of \(slot.name) cannot be encoded by its value transformer." }
    return "The value of \(slot.name) cannot be encoded: no value transformer is registered under "
      + "the name '\(slot.transformerName ?? "")', and no class of the name was found. Register it with "
      + "ValueTransformer.setValueTransformer(_:forName:) before the store is loaded, or give the "
      + "target of its class the build plugin CoreDataModels."
  }

  /// The error of an operation that would replace a value that this process cannot decode.
  static func unreadable(_ bytes: Data, _ slot: AttributeSlot, of layout: EntityLayout) -> NSError {
    var reason = "a value of the attribute '\(slot.name)' of \(layout.entityName) cannot be decoded"
    if let name = slot.transformerName, !name.isEmpty {
      reason += " by the value transformer '\(name)'"
      if transformer(of: slot) == nil { reason += ", which is not registered" }
    }
    let classes = TransformableArchive.classNames(in: bytes)
    if !classes.isEmpty { reason += "; its archive has \(classes.joined(separator: ", "))" }
    return CoreDataError.make(
      NSMigrationError,
      "The store was not migrated: \(reason). Register the transformer, or link the class, before the "
        + "store is loaded.",
      ["entity": layout.entityName, "property": slot.name]
    )
  }

  private static func transformer(of slot: AttributeSlot) -> ValueTransformer? {
    guard let name = slot.transformerName, !name.isEmpty else { return nil }
    if let known = ValueTransformer.valueTransformer(forName: NSValueTransformerName(name)) {
      return known
    }
    // Models name Apple's transformers by constant or by class.
    guard !name.hasPrefix("NSSecureUnarchiveFromData") else {
      return ValueTransformer.valueTransformer(forName: .secureUnarchiveFromDataTransformerName)
    }
    warn(of: name, slot)
    return nil
  }

  /// Logs once for each attribute that its transformer is missing: the values read as nil, unless
  /// they are archives, and their bytes stay in the store.
  private static func warn(of transformer: String, _ slot: AttributeSlot) {
    let isNew = warned.withLock { $0.insert("\(transformer) \(slot.name)").inserted }
    guard isNew else { return }
    StoreLog.warning(
      "No value transformer is registered under the name '\(transformer)', which the attribute "
        + "'\(slot.name)' has. Register it with ValueTransformer.setValueTransformer(_:forName:) "
        + "before the store is loaded."
    )
  }

  private static let warned = Mutex<Set<String>>([])
}

extension AttributeSlot {
  /// Whether the model names a transformer for the attribute.
  fileprivate var namesTransformer: Bool { !(transformerName ?? "").isEmpty }
}
