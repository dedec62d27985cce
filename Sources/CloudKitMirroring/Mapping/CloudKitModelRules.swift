import Foundation
import OpenCoreData

/// The rules that a Core Data model must follow to be mirrored with CloudKit.
package enum CloudKitModelRules {
  /// One rule, and the parts of the model that violate it.
  package struct Violation: Hashable, Sendable {
    /// Apple's own text.
    package var leadingText: String
    /// "Entity: property", sorted case-insensitively.
    package var items: [String]

    package init(leadingText: String, items: [String]) {
      self.leadingText = leadingText
      self.items = items.sorted {
        ($0.lowercased(), $0) < ($1.lowercased(), $1)
      }
    }

    /// The text with its items, as an error contains it.
    package var text: String {
      items.isEmpty ? leadingText : leadingText + "\n" + items.joined(separator: "\n")
    }
  }

  /// Every violation in a configuration of a model; nil is the configuration with all entities.
  package static func violations(
    of model: NSManagedObjectModel?,
    configuration: String? = nil
  ) -> [Violation] {
    guard let model else {
      return [
        Violation(leadingText: "CloudKit integration requires a managed object model.", items: [])
      ]
    }
    guard let entities = model.entities(forConfigurationName: configuration) else {
      return [
        Violation(
          leadingText: "CloudKit integration requires a configuration that the model has; "
            + "it has none of this name:",
          items: [configuration ?? ""]
        )
      ]
    }
    guard !entities.isEmpty else {
      return [
        Violation(
          leadingText: "CloudKit integration requires that the configuration has entities.",
          items: []
        )
      ]
    }
    return rules.compactMap { rule in
      let items = Set(entities.flatMap { rule.items($0, entities) })
      return items.isEmpty ? nil : Violation(leadingText: rule.text, items: Array(items))
    }
    .sorted { $0.leadingText < $1.leadingText }
  }

  /// The error of a model that violates rules, with all of them in its failure reason.
  package static func error(_ violations: [Violation], storeURL: URL? = nil) -> NSError {
    var userInfo: [String: Any] = [
      NSLocalizedFailureReasonErrorKey: violations.map(\.text).joined(separator: "\n")
    ]
    if let storeURL { userInfo[NSURLErrorKey] = storeURL }
    return NSError(
      domain: MirroringErrorCode.domain,
      code: MirroringErrorCode.modelRefused.rawValue,
      userInfo: userInfo
    )
  }

  private struct Rule {
    var text: String
    var items: (_ entity: NSEntityDescription, _ all: [NSEntityDescription]) -> [String]
  }

  /// The rules in no particular order; the report sorts them by their texts.
  private static var rules: [Rule] {
    [
      attribute(
        "CloudKit integration requires that all attributes be optional, or have a default value "
          + "set. The following attributes are marked non-optional but do not have a default "
          + "value:"
      ) { isMirrored($0) && !$0.isOptional && $0.defaultValue == nil },
      attribute(
        "CloudKit integration does not support all attribute types. The following attributes "
          + "have types that are not supported:"
      ) { isMirrored($0) && AttributeMapping.Form($0.attributeType) == nil },
      attribute(
        "CloudKit integration requires that record ID attributes preserve their value in the "
          + "persistent history on deletion, the following do not:"
      ) { $0.name == MirrorNames.recordIDAttribute && !$0.preservesValueInHistoryOnDeletion },
      attribute(
        "CloudKit integration requires that ignored attributes be optional, the following are "
          + "not:"
      ) { MirrorFlags.isIgnored($0) && !$0.isOptional },
      attribute(
        "CloudKit integration requires that the flags in the user info of attributes are "
          + "booleans, the following are not:"
      ) { attribute in
        MirrorFlags.keys.contains { key in
          attribute.userInfo?[key].map { MirrorFlags.truth($0) == nil } ?? false
        }
      },
      relationship(
        "CloudKit integration requires that all relationships have an inverse, the following do "
          + "not:"
      ) { relationship, _ in relationship.inverseRelationship == nil },
      relationship(
        "CloudKit integration requires that all relationships be optional, the following are not:"
      ) { relationship, _ in !relationship.isOptional },
      relationship(
        "CloudKit integration does not support ordered relationships. The following "
          + "relationships are marked ordered:"
      ) { relationship, _ in relationship.isOrdered },
      relationship(
        "The following relationships are configured with unsupported delete rules:"
      ) { relationship, _ in relationship.deleteRule == .denyDeleteRule },
      relationship(
        "CloudKit integration does not allow relationships to objects that aren't sync'd. The "
          + "following relationships have destination entities that not in the specified "
          + "configuration:"
      ) { relationship, all in
        guard let destination = relationship.destinationEntity else { return true }
        return !all.contains { $0 === destination }
      },
      relationship(
        "CloudKit integration does not support ignoring or encrypting relationships. The "
          + "following relationships are marked so:"
      ) { relationship, _ in
        relationship.userInfo?[MirrorNames.ignoredKey] != nil
          || relationship.userInfo?[MirrorNames.encryptedKey] != nil
      },
      Rule(
        text: "CloudKit integration does not support unique constraints. The following entities "
          + "are constrained:"
      ) { entity, _ in
        entity.uniquenessConstraintNames.map { names in
          "\(entity.name ?? ""): \(names.joined(separator: ", "))"
        }
      },
      Rule(
        text: "CloudKit integration requires that all entities can be materialized in a CKRecord "
          + "of less than \(AssetBudget.recordLimit) bytes. The following entities cannot:"
      ) { entity, _ in
        smallestRecord(of: entity) < AssetBudget.recordLimit ? [] : [entity.name ?? ""]
      },
    ]
  }

  private static func attribute(
    _ text: String,
    _ isBroken: @escaping (NSAttributeDescription) -> Bool
  ) -> Rule {
    Rule(text: text) { entity, _ in
      entity.ownProperties.compactMap { $0 as? NSAttributeDescription }.filter(isBroken)
        .map { "\(entity.name ?? ""): \($0.name)" }
    }
  }

  private static func relationship(
    _ text: String,
    _ isBroken: @escaping (NSRelationshipDescription, [NSEntityDescription]) -> Bool
  ) -> Rule {
    Rule(text: text) { entity, all in
      entity.ownProperties.compactMap { $0 as? NSRelationshipDescription }
        .filter { isBroken($0, all) }
        .map { "\(entity.name ?? ""): \($0.name)" }
    }
  }

  private static func isMirrored(_ attribute: NSAttributeDescription) -> Bool {
    !attribute.isTransient && !(attribute is NSDerivedAttributeDescription)
      && !MirrorFlags.isIgnored(attribute)
  }

  /// The bytes of a record with every field set and all movable values in files.
  private static func smallestRecord(of entity: NSEntityDescription) -> Int {
    entity.propertiesByName.reduce(0) { total, entry in
      let key = MirrorNames.field(entry.key).utf8.count
      guard let attribute = entry.value as? NSAttributeDescription else { return total + key + 255 }
      let form = AttributeMapping.Form(attribute.attributeType)
      return total + key + (form?.hasAsset == true ? 0 : 36)
    }
  }
}
