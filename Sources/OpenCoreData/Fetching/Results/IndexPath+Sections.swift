import Foundation

/// The accessors that UIKit and AppKit declare for an index path's two components.
///
/// Foundation on Linux has index paths without them.
extension IndexPath {
  /// Creates the index path of a row in a section.
  public init(row: Int, section: Int) {
    self.init(indexes: [section, row])
  }

  /// Creates the index path of an item in a section.
  public init(item: Int, section: Int) {
    self.init(indexes: [section, item])
  }

  /// The section's number.
  public var section: Int {
    get { self[0] }
    set { self[0] = newValue }
  }

  /// The row's number within its section.
  public var row: Int {
    get { self[1] }
    set { self[1] = newValue }
  }

  /// The item's number within its section.
  public var item: Int {
    get { self[1] }
    set { self[1] = newValue }
  }
}
