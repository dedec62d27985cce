import CZlib
import Foundation

/// Reads and writes compiled models, and the copy of its model in every store.
package enum ModelArchive {
  /// The limit of a decompressed model; a damaged stream may claim any size.
  static let maximumBytes = 256 << 20

  /// Reads the bytes of a `.mom`.
  package static func model(
    fromArchive data: Data,
    file: String
  ) throws -> NSManagedObjectModel {
    try ModelUnarchiver.model(from: data, file: file)
  }

  /// Reads `Z_MODELCACHE.Z_CONTENT`: a raw DEFLATE stream of a keyed archive.
  package static func model(fromModelCache data: Data) throws -> NSManagedObjectModel {
    try ModelUnarchiver.model(from: inflate(data), file: "Z_MODELCACHE")
  }

  /// Writes the contents of `Z_MODELCACHE.Z_CONTENT`.
  package static func modelCache(for model: NSManagedObjectModel) throws -> Data {
    try deflate(archive(of: model))
  }

  /// Writes the model as a keyed archive.
  package static func archive(of model: NSManagedObjectModel) -> Data {
    ModelArchiver.archive(of: model)
  }

  // MARK: Compression

  /// A raw stream has no header and no checksum: window bits are negative (zlib.h, inflateInit2).
  private static let windowBits: Int32 = -15

  private static func inflate(_ data: Data) throws -> Data {
    var stream = z_stream()
    let size = Int32(MemoryLayout<z_stream>.size)
    guard inflateInit2_(&stream, windowBits, ZLIB_VERSION, size) == Z_OK else {
      throw damage("zlib cannot start", expected: "memory for a window")
    }
    defer { inflateEnd(&stream) }
    var output = Data()
    var input = [UInt8](data)
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    var status = Z_OK
    try input.withUnsafeMutableBufferPointer { source in
      stream.next_in = source.baseAddress
      stream.avail_in = UInt32(clamping: source.count)
      while status != Z_STREAM_END {
        let produced = chunk.withUnsafeMutableBufferPointer { target in
          stream.next_out = target.baseAddress
          stream.avail_out = UInt32(clamping: target.count)
          status = CZlib.inflate(&stream, Z_NO_FLUSH)
          return target.count - Int(stream.avail_out)
        }
        guard status == Z_OK || status == Z_STREAM_END, produced > 0 || status == Z_STREAM_END
        else {
          throw damage("the compressed stream is damaged", expected: "a whole DEFLATE stream")
        }
        output.append(contentsOf: chunk[0..<produced])
        guard output.count <= maximumBytes else {
          throw damage("the stream unfolds to too much", expected: "at most \(maximumBytes) bytes")
        }
      }
    }
    return output
  }

  private static func deflate(_ data: Data) throws -> Data {
    var stream = z_stream()
    let size = Int32(MemoryLayout<z_stream>.size)
    let started = deflateInit2_(
      &stream,
      Z_DEFAULT_COMPRESSION,
      Z_DEFLATED,
      windowBits,
      8,
      Z_DEFAULT_STRATEGY,
      ZLIB_VERSION,
      size
    )
    guard started == Z_OK else {
      throw damage("zlib cannot start", expected: "memory for a window")
    }
    defer { deflateEnd(&stream) }
    var input = [UInt8](data)
    var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(input.count))))
    let status = input.withUnsafeMutableBufferPointer { source in
      output.withUnsafeMutableBufferPointer { target in
        stream.next_in = source.baseAddress
        stream.avail_in = UInt32(clamping: source.count)
        stream.next_out = target.baseAddress
        stream.avail_out = UInt32(clamping: target.count)
        return CZlib.deflate(&stream, Z_FINISH)
      }
    }
    guard status == Z_STREAM_END else {
      throw damage("the model cannot be compressed", expected: "a model of usual size")
    }
    return Data(output.prefix(Int(stream.total_out)))
  }

  private static func damage(_ found: String, expected: String) -> ModelFileError {
    ModelFileError(.malformed, file: "Z_MODELCACHE", found: found, expected: expected)
  }
}
