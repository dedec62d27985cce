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
