import Foundation

extension NSManagedObjectModel {
  /// The configuration whose entities a store has; nil for all entities, and where none has them.
  ///
  /// The preferred one is taken where several have these entities.
  func configuration(holding names: Set<String>, preferring preferred: String?) -> String? {
    let all: [String?] = [preferred, nil] + configurations
    let found = all.first { configuration in
      let entities = entities(forConfigurationName: configuration) ?? []
      return Set(entities.compactMap(\.name)) == names
    }
    return found ?? nil
  }

  /// A configuration that the model has; nil for all entities where it has none of the name.
  func known(_ configuration: String?) -> String? {
    entities(forConfigurationName: configuration) == nil ? nil : configuration
  }
}
