import Foundation

/// The code of the error that the body throws; nil if it throws none.
func errorCode(_ body: () throws -> Void) -> Int? {
  do {
    try body()
    return nil
  } catch {
    return (error as NSError).code
  }
}
