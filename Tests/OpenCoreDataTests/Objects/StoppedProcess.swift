import Foundation
import Testing

/// Whether a process that stopped printed the text.
func said(_ result: ExitTest.Result?, _ sentence: String) -> Bool {
  guard let result else { return false }
  return String(decoding: result.standardErrorContent, as: UTF8.self).contains(sentence)
}
