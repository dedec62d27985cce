// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

/// A class written by hand whose properties are generated.
public final class Author: NSManagedObject {
  public var greeting: String { "I am \(nickname ?? name ?? "nobody")" }
}
