import CSQLite
import Foundation

/// Retains the closure of a function for SQLite, which releases it with the function.
private final class FunctionBox {
  let body: ([SQLiteValue]) throws -> SQLiteValue

  init(_ body: @escaping ([SQLiteValue]) throws -> SQLiteValue) {
    self.body = body
  }
}

/// Retains the factory of an aggregate function's runs; SQLite releases it with the function.
private final class AggregateBox {
  let begin: () -> any SQLiteAggregate

  init(_ begin: @escaping () -> any SQLiteAggregate) {
    self.begin = begin
  }
}

/// One run of an aggregate function over the rows of a group.
package protocol SQLiteAggregate: AnyObject {
  /// Adds the arguments of one row.
  func take(_ arguments: [SQLiteValue])

  /// The value over all rows.
  var result: SQLiteValue { get }
}

private final class CollationBox {
  let compare: (String, String) -> ComparisonResult

  init(_ compare: @escaping (String, String) -> ComparisonResult) {
    self.compare = compare
  }
}

extension SQLiteConnection {
  /// Registers a scalar SQL function.
  ///
  /// A thrown error becomes the statement's error.
  package func register(
    function name: String,
    argumentCount: Int,
    deterministic: Bool = true,
    _ body: @escaping ([SQLiteValue]) throws -> SQLiteValue
  ) throws {
    let box = Unmanaged.passRetained(FunctionBox(body)).toOpaque()
    let flags = SQLITE_UTF8 | (deterministic ? SQLITE_DETERMINISTIC : 0)
    let result = sqlite3_create_function_v2(
      handle,
      name,
      Int32(argumentCount),
      flags,
      box,
      { context, count, values in
        guard let data = sqlite3_user_data(context) else { return }
        let box = Unmanaged<FunctionBox>.fromOpaque(data).takeUnretainedValue()
        var arguments: [SQLiteValue] = []
        arguments.reserveCapacity(Int(count))
        for index in 0..<Int(count) { arguments.append(argument(values?[index])) }
        do {
          report(try box.body(arguments), to: context)
        } catch {
          sqlite3_result_error(context, "\(error)", -1)
        }
      },
      nil,
      nil,
      { data in
        if let data { Unmanaged<FunctionBox>.fromOpaque(data).release() }
      }
    )
    guard result == SQLITE_OK else { throw lastError(sql: nil) }
  }

  /// Registers an aggregate SQL function; each group of rows has its own run.
  package func register(
    aggregate name: String,
    argumentCount: Int,
    _ begin: @escaping () -> any SQLiteAggregate
  ) throws {
    let box = Unmanaged.passRetained(AggregateBox(begin)).toOpaque()
    let result = sqlite3_create_function_v2(
      handle,
      name,
      Int32(argumentCount),
      SQLITE_UTF8 | SQLITE_DETERMINISTIC,
      box,
      nil,
      { context, count, values in
        guard let place = aggregatePlace(context, isNew: true) else { return }
        if place.pointee == nil {
          guard let data = sqlite3_user_data(context) else { return }
          let run = Unmanaged<AggregateBox>.fromOpaque(data).takeUnretainedValue().begin()
          place.pointee = Unmanaged.passRetained(run as AnyObject).toOpaque()
        }
        guard let run = place.pointee else { return }
        var arguments: [SQLiteValue] = []
        for index in 0..<Int(count) { arguments.append(argument(values?[index])) }
        let aggregate = Unmanaged<AnyObject>.fromOpaque(run).takeUnretainedValue()
        (aggregate as? any SQLiteAggregate)?.take(arguments)
      },
      { context in
        // Called once for each group, also when the statement is interrupted; a group without rows
        // has no run yet.
        var run: AnyObject?
        if let place = aggregatePlace(context, isNew: false), let pointer = place.pointee {
          run = Unmanaged<AnyObject>.fromOpaque(pointer).takeRetainedValue()
        } else if let data = sqlite3_user_data(context) {
          run = Unmanaged<AggregateBox>.fromOpaque(data).takeUnretainedValue().begin()
        }
        report((run as? any SQLiteAggregate)?.result ?? .null, to: context)
      },
      { data in
        if let data { Unmanaged<AggregateBox>.fromOpaque(data).release() }
      }
    )
    guard result == SQLITE_OK else { throw lastError(sql: nil) }
  }

  /// Registers a collation.
  package func register(
    collation name: String,
    _ compare: @escaping (String, String) -> ComparisonResult
  ) throws {
    let box = Unmanaged.passRetained(CollationBox(compare)).toOpaque()
    let result = sqlite3_create_collation_v2(
      handle,
      name,
      SQLITE_UTF8,
      box,
      { data, leftCount, left, rightCount, right in
        guard let data else { return 0 }
        let box = Unmanaged<CollationBox>.fromOpaque(data).takeUnretainedValue()
        let order = box.compare(string(left, leftCount), string(right, rightCount))
        return Int32(order.rawValue)
      },
      { data in
        if let data { Unmanaged<CollationBox>.fromOpaque(data).release() }
      }
    )
    guard result == SQLITE_OK else { throw lastError(sql: nil) }
  }
}

private func string(_ pointer: UnsafeRawPointer?, _ count: Int32) -> String {
  guard let pointer else { return "" }
  return String(
    decoding: UnsafeRawBufferPointer(start: pointer, count: Int(count)),
    as: UTF8.self
  )
}

private func argument(_ value: OpaquePointer?) -> SQLiteValue {
  switch sqlite3_value_type(value) {
  case SQLITE_INTEGER: return .integer(sqlite3_value_int64(value))
  case SQLITE_FLOAT: return .real(sqlite3_value_double(value))
  case SQLITE_TEXT:
    return .text(string(sqlite3_value_text(value), sqlite3_value_bytes(value)))
  case SQLITE_BLOB:
    guard let bytes = sqlite3_value_blob(value) else { return .blob(Data()) }
    return .blob(Data(bytes: bytes, count: Int(sqlite3_value_bytes(value))))
  default: return .null
  }
}

/// The memory in which SQLite keeps the run of an aggregate function.
private func aggregatePlace(
  _ context: OpaquePointer?,
  isNew: Bool
) -> UnsafeMutablePointer<UnsafeMutableRawPointer?>? {
  let size = Int32(MemoryLayout<UnsafeMutableRawPointer?>.size)
  return sqlite3_aggregate_context(context, isNew ? size : 0)?
    .assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
}

private func report(_ value: SQLiteValue, to context: OpaquePointer?) {
  switch value {
  case .null: sqlite3_result_null(context)
  case .integer(let value): sqlite3_result_int64(context, value)
  case .real(let value): sqlite3_result_double(context, value)
  case .text(var value):
    // Passes the length, because text may contain a NUL.
    value.withUTF8 { bytes in
      guard let base = bytes.baseAddress else {
        sqlite3_result_text(context, "", 0, transientDestructor)
        return
      }
      base.withMemoryRebound(to: CChar.self, capacity: bytes.count) { pointer in
        sqlite3_result_text64(
          context,
          pointer,
          UInt64(bytes.count),
          transientDestructor,
          UInt8(SQLITE_UTF8)
        )
      }
    }
  case .blob(let value):
    value.withUnsafeBytes { bytes in
      if let base = bytes.baseAddress, !bytes.isEmpty {
        sqlite3_result_blob64(context, base, UInt64(bytes.count), transientDestructor)
      } else {
        sqlite3_result_zeroblob(context, 0)
      }
    }
  }
}
