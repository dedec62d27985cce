// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

/// Stores a list of words as JSON; the model names the class, and no code registers it.
#if canImport(ObjectiveC)
@objc(LabelsTransformer)
#endif
public final class LabelsTransformer: ValueTransformer, @unchecked Sendable {
  public override func transformedValue(_ value: Any?) -> Any? {
    (value as? [String]).flatMap { try? JSONEncoder().encode($0) }
  }

  public override func reverseTransformedValue(_ value: Any?) -> Any? {
    (value as? Data).flatMap { try? JSONDecoder().decode([String].self, from: $0) }
  }
}
