import Foundation
import OpenCoreData
import Testing

/// A subject that validates its own name.
final class StrictSubject: NSManagedObject {
  override func validateValue(
    _ value: AutoreleasingUnsafeMutablePointer<AnyObject?>,
    forKey key: String
  ) throws {
    try super.validateValue(value, forKey: key)
    if key == "name", value.pointee as? String == "forbidden" {
      throw CocoaError(.managedObjectValidation)
    }
    if key == "name", value.pointee as? String == "mend me" {
      value.pointee = NSString(string: "mended")
    }
  }
}

@Suite("Overridden validation")
struct ValidationOverrideTests {
  @Test("A class's own validation of values is called on saves, and may replace the value")
  func override() throws {
    let model = LibraryModel.make()
    model.entitiesByName["Subject"]?.managedObjectClassName =
      NSStringFromClass(StrictSubject.self)
    let library = try Library(model: model, inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let subject = StrictSubject(context: context)
      subject.setValue("forbidden", forKey: "name")
      let error = #expect(throws: CocoaError.self) { try context.save() }
      #expect(error?.code == .managedObjectValidation)
      subject.setValue("mend me", forKey: "name")
      try context.save()
      #expect(subject.value(forKey: "name") as? String == "mended")
    }
  }
}
