import Foundation

/// The bundle with the compiled model, for those who load it themselves.
public enum BlogModelBundle {
  public static var bundle: Bundle { Bundle.module }
}
