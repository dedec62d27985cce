// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation

/// The bundle with the compiled model, for code that loads it itself.
public enum BlogModelBundle {
  public static var bundle: Bundle { Bundle.module }
}
