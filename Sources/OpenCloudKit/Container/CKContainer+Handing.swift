// How the methods that existed before Swift had `async` hand over what the asynchronous ones return.
extension CKContainer {
  /// Runs the body and hands its value or its error to the handler.
  func hand<Output: Sendable>(
    over completionHandler: @escaping @Sendable (Output?, (any Error)?) -> Void,
    _ body: @escaping @Sendable (CKContainer) async throws -> Output?
  ) {
    effects.tasks.spawn {
      do {
        completionHandler(try await body(self), nil)
      } catch {
        completionHandler(nil, error)
      }
    }
  }

  /// Runs the body and hands its result to the handler.
  func hand<Output: Sendable>(
    overResult completionHandler: @escaping @Sendable (Result<Output, any Error>) -> Void,
    _ body: @escaping @Sendable (CKContainer) async throws -> Output
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
