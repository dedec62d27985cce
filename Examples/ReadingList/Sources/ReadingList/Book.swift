// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CoreData

/// A class written by hand: its code is the same on Apple's platforms.
public class Book: NSManagedObject {
  @NSManaged public var title: String?
  @NSManaged public var pagesRead: Int32
  @NSManaged public var author: Author?

  var summary: String {
    "\(title ?? "Untitled") by \(author?.fullName ?? "nobody"), \(pagesRead) pages read"
  }
}
