import Effects

// Adapters for the methods with completion handlers: they pass the result of an asynchronous body
// to the handler.
extension CKContainer {
  /// Runs the body and passes its value or its error to the handler.
  func complete<Output: Sendable>(
    _ completionHandler: @escaping @Sendable (Output?, (any Error)?) -> Void,
    with body: @escaping @Sendable (CKContainer) async throws -> Output?
  ) {
    effects.tasks.spawn {
      do {
        completionHandler(try await body(self), nil)
      } catch {
        completionHandler(nil, error)
      }
    }
  }

  /// Runs the body and passes its result to the handler.
  func complete<Output: Sendable>(
    result completionHandler: @escaping @Sendable (Result<Output, any Error>) -> Void,
    with body: @escaping @Sendable (CKContainer) async throws -> Output
  ) {
    effects.tasks.spawn {
      do {
        completionHandler(.success(try await body(self)))
      } catch {
        completionHandler(.failure(error))
      }
    }
  }
}
