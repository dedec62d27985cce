// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

/// As on Apple's platforms, a managed object's class is not the main actor's alone.
nonisolated public class Page: NSManagedObject {
  @NSManaged public var number: Int16
  @NSManaged public var note: Note?
}

/// What belongs to the main actor uses the classes as they are.
func firstPage(of note: Note) -> Page? { note.typedPages.first }
