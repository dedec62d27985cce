import Foundation
import Synchronization

/// The models in use, so that a class finds its entity without a context.
enum ManagedObjectModels {
  private static let models = Mutex<[NSManagedObjectModel]>([])

  /// Called when a coordinator takes a model.
  ///
  /// Frozen models live as long as the process anyway.
  static func register(_ model: NSManagedObjectModel) {
    // A defect of a model is an error of the first store that is opened with it.
    guard model.defect == nil else { return }
    model.freeze()
    models.withLock { models in
      models.removeAll { $0 === model }
      models.append(model)
    }
  }

  /// The entity of a class, or one without properties: of a class without an entity, and of the base class, which
  /// stands for no entity in particular.
  static func entityOrPlaceholder(of type: NSManagedObject.Type) -> NSEntityDescription {
    (type == NSManagedObject.self ? nil : entity(of: type)) ?? placeholder.entity
  }

  /// An entity, with the model that it needs.
  private struct Placeholder: @unchecked Sendable {
    // Sendable: a frozen model does not change.
    let entity = NSEntityDescription()
    private let model = NSManagedObjectModel()

    init() {
      entity.name = "NSManagedObject"
      model.entities = [entity]
      model.freeze()
    }
  }

  private static let placeholder = Placeholder()

  static func entity(of type: NSManagedObject.Type) -> NSEntityDescription? {
    for model in models.withLock({ $0 }).reversed() {
      if let template = ObjectTemplate.of(type, in: model) { return template.layout.entity }
    }
    return nil
  }
}
