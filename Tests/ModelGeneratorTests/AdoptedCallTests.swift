import ModelGenerator
import Testing

/// Notes about calls, which are changed by hand.
@Suite("Adopting calls")
struct AdoptedCallTests {
  @Test("A call of a requirement that is optional on Apple's platforms alone is reported")
  func optionalRequirements() {
    let source = """
      import CoreData
      func forward() {
        delegate?.controllerWillChangeContent?(controller)
        delegate?.controller?(c, didChange: object, at: nil, for: .insert, newIndexPath: path)
        delegate?.controller?(c)
        delegate?.controllerDidChangeContent(controller)
      }
      """
    let result = SourceAdopter.adopt(SourceFile(path: "A.swift", text: source))
    #expect(result.text == source)
    #expect(result.notes.map(\.line) == [3, 4])
    #expect(result.notes.allSatisfy { $0.isByHand })
  }

  @Test("A note about several lines of source is one line")
  func oneLine() {
    let source = """
      import CoreData
      let request = Post
        .request(of: 1)
        .copy() as! NSFetchRequest<NSFetchRequestResult>
      """
    let result = SourceAdopter.adopt(SourceFile(path: "A.swift", text: source))
    #expect(result.notes.count == 1)
    #expect(result.notes.allSatisfy { !$0.text.contains("\n") })
  }
}
