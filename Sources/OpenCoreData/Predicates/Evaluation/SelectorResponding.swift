/// An object that answers methods which an expression calls by name, `FUNCTION(object, "name:", …)`.
package protocol SelectorResponding {
  func respond(to selector: String, arguments: [Any?]) throws -> Any?
}
