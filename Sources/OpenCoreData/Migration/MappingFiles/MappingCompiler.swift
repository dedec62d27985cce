import Effects
import Foundation

/// Brings a mapping model into the form that apps carry: `Name.cdm`.
///
/// Xcode archives the mappings. Here the file has the editor's own XML, which
/// `NSMappingModel(contentsOf:)` reads under either name.
package enum MappingCompiler {
  /// Checks a `Name.xcmappingmodel` and writes what it says into a file, which is replaced.
  package static func compile(_ mapping: URL, into file: URL) throws {
    _ = try MappingFile.load(contentsOf: mapping)
    try MappingFile.data(of: mapping).write(to: file)
  }
}
