/// Runs the body for each element, at most `limit` at a time, and keeps the order of the results.
///
/// The bodies are child tasks: cancelling the caller cancels them.
func mapConcurrently<Element: Sendable, Output: Sendable>(
  _ elements: [Element],
  limit: Int,
  _ body: @escaping @Sendable (Element) async -> Output
) async -> [Output] {
  guard elements.count > 1 else {
    var outputs: [Output] = []
    for element in elements { outputs.append(await body(element)) }
    return outputs
  }
  return await withTaskGroup(of: (Int, Output).self) { group in
    var outputs = [Output?](repeating: nil, count: elements.count)
    var next = 0
    func startOne() {
      guard next < elements.count else { return }
      let index = next
      let element = elements[index]
      next += 1
      group.addTask { (index, await body(element)) }
    }
    for _ in 0..<max(1, limit) { startOne() }
    for await (index, output) in group {
      outputs[index] = output
      startOne()
    }
    return outputs.compactMap { $0 }
  }
}
