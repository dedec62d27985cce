import Foundation
import OpenCoreData

public class Page: NSManagedObject {
  @NSManaged public var number: Int16
  @NSManaged public var note: Note?
}
