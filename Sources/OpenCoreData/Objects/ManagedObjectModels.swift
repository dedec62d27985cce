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

  static func entity(of type: NSManagedObject.Type) -> NSEntityDescription? {
    for model in models.withLock({ $0 }).reversed() {
      if let template = ObjectTemplate.of(type, in: model) { return template.layout.entity }
    }
    return nil
  }
}
