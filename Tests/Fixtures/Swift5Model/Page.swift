// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

public class Page: NSManagedObject {
  @NSManaged public var number: Int16
  @NSManaged public var note: Note?
}
