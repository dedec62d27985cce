// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

/// A class written by hand whose properties are generated.
public final class Author: NSManagedObject {
  public var greeting: String { "I am \(nickname ?? name ?? "nobody")" }
}

// Members that Core Data finds by their names.
extension Author {
  #if canImport(ObjectiveC)
  @objc
  #endif
  public var initial: String { String((name ?? "?").prefix(1)) }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public var nicknameLength: Int {
    get { nickname?.count ?? 0 }
    set { nickname = String(repeating: "x", count: newValue) }
  }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public static func keyPathsForValuesAffectingInitial() -> Set<String> { ["name"] }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public func validateNickname(_ value: AutoreleasingUnsafeMutablePointer<AnyObject?>) throws {
    guard let text = value.pointee as? String else { return }
    if text.contains("@") {
      throw NSError(domain: "Blog", code: 7, userInfo: [NSLocalizedDescriptionKey: "no addresses"])
    }
    value.pointee = text.trimmingCharacters(in: .whitespaces) as NSString
  }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public func validateName(_ value: AutoreleasingUnsafeMutablePointer<AnyObject?>) throws {
    guard let text = value.pointee as? String, text != "?" else {
      throw NSError(domain: "Blog", code: 9)
    }
  }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public func validatePosts(_ value: AutoreleasingUnsafeMutablePointer<AnyObject?>) throws {
    guard (value.pointee as? NSSet)?.count ?? 0 < 3 else {
      throw NSError(domain: "Blog", code: 8)
    }
  }
}
