/// An object with methods that an expression can call by name, `FUNCTION(object, "name:", …)`.
package protocol SelectorResponding {
  func respond(to selector: String, arguments: [Any?]) throws -> Any?
}
