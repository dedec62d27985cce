import CloudKitMirroring
import Foundation
import OpenCoreData
import Testing

@Suite struct CloudKitModelRulesTests {
  private func leadingTexts(
    _ model: NSManagedObjectModel,
    _ configuration: String? = nil
  ) -> [String] {
    CloudKitModelRules.violations(of: model, configuration: configuration).map(\.leadingText)
  }

  @Test("The model of Apple's page violates no rule")
  func cleanModel() {
    #expect(CloudKitModelRules.violations(of: BlogModel.make()).isEmpty)
  }

  @Test("All violations are reported together, each with its sorted items")
  func everything() {
    let thing = BlogModel.entity(
      "Thing",
      [
        BlogModel.attribute("required", .stringAttributeType) { $0.isOptional = false },
        BlogModel.attribute("Also", .stringAttributeType) { $0.isOptional = false },
        BlogModel.attribute("defaulted", .stringAttributeType) {
          $0.isOptional = false
          $0.defaultValue = "x"
        },
        BlogModel.attribute("object", .objectIDAttributeType),
        BlogModel.attribute("untyped", .undefinedAttributeType),
      ]
    )
    let lonely = NSRelationshipDescription()
    lonely.name = "lonely"
    lonely.destinationEntity = thing
    lonely.isOptional = false
    lonely.isOrdered = true
    lonely.deleteRule = .denyDeleteRule
    thing.properties += [lonely]
    thing.uniquenessConstraints = [["defaulted"]]
    let model = NSManagedObjectModel()
    model.entities = [thing]
    let violations = CloudKitModelRules.violations(of: model)
    let items = Dictionary(uniqueKeysWithValues: violations.map { ($0.leadingText, $0.items) })
    #expect(
      items[
        "CloudKit integration requires that all attributes be optional, or have a default value "
          + "set. The following attributes are marked non-optional but do not have a default value:"
      ] == ["Thing: Also", "Thing: required"]
    )
    #expect(
      items[
        "CloudKit integration requires that all relationships have an inverse, the following do not:"
      ] == ["Thing: lonely"]
    )
    #expect(
      items[
        "CloudKit integration does not support ordered relationships. The following relationships "
          + "are marked ordered:"
      ] == ["Thing: lonely"]
    )
    #expect(
      items[
        "CloudKit integration requires that all relationships be optional, the following are not:"
      ]
        == ["Thing: lonely"]
    )
    #expect(
      items[
        "CloudKit integration does not support unique constraints. The following entities are "
          + "constrained:"
      ] == ["Thing: defaulted"]
    )
    #expect(
      items["The following relationships are configured with unsupported delete rules:"]
        == ["Thing: lonely"]
    )
    let types = violations.first { $0.leadingText.contains("all attribute types") }
    #expect(types?.items == ["Thing: object", "Thing: untyped"])
    #expect(violations.map(\.leadingText) == violations.map(\.leadingText).sorted())
    let error = CloudKitModelRules.error(violations)
    #expect(error.code == 134_060)
    #expect(error.localizedFailureReason?.contains("Thing: required") == true)
  }

  @Test("A relationship may not leave its configuration")
  func configurations() {
    let model = BlogModel.make()
    let cloud = ["Post", "ImagePost", "VideoPost", "Tag"].compactMap { model.entitiesByName[$0] }
    model.setEntities(cloud, forConfigurationName: "Cloud")
    let violations = CloudKitModelRules.violations(of: model, configuration: "Cloud")
    #expect(violations.map(\.items) == [["Post: attachments"]])
    #expect(leadingTexts(model, "Nowhere").count == 1)
    #expect(leadingTexts(NSManagedObjectModel()).count == 1)
  }
}
