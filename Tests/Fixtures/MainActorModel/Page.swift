// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

/// As on Apple's platforms, a managed object's class is not isolated to the main actor.
nonisolated public class Page: NSManagedObject {
  @NSManaged public var number: Int16
  @NSManaged public var note: Note?
}

/// Code of the main actor uses the classes unchanged.
func firstPage(of note: Note) -> Page? { note.typedPages.first }

/// Members of the main actor, by the module's default, that are found by their names.
extension Page {
  #if canImport(ObjectiveC)
  @objc
  #endif
  public var heading: String { "Page \(number)" }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public class func keyPathsForValuesAffectingHeading() -> Set<String> { ["number"] }
}

/// Members of the main actor by an attribute.
@MainActor extension Page {
  #if canImport(ObjectiveC)
  @objc
  #endif
  public var caption: String { heading.uppercased() }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public func validateNumber(_ value: AutoreleasingUnsafeMutablePointer<AnyObject?>) throws {}
}
