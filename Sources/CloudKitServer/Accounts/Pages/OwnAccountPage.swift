import CloudKitWebServices
import Foundation

/// The page of a user's own account, after they have signed in on it.
///
/// Each form has the session in a hidden field: there is no cookie that a foreign page could make a
/// browser send.
struct OwnAccountPage {
  var overview: AccountOverview
  var session: String
  var message: String?
  /// The refused request, with the form that sent it.
  var refusal: Refusal?
  /// A secret for an authenticator app; like recovery codes, it is shown once.
  var secret: SecondFactorOffer?
  var recoveryCodes: [String]?
  var export: AccountExportLink?
  /// Whether the server can send a link that confirms an address.
  var sendsMail: Bool
  /// Whether forms ask for the password; a user of another service may have none, and can then
  /// change only what needs none.
  var hasPassword: Bool
  var shortestPassword: Int
  var daysUntilRemoval: Int

  /// Why a form was refused.
  struct Refusal {
    /// The refused form; nil if it is none of the page's.
    var form: OwnPageAction?
    var reason: String
  }

  func response(status: Int = 200) -> WebServiceResponse {
    let changes = hasPassword ? factorHTML + changesHTML : ""
    let parts = onceHTML + devicesHTML + sessionsHTML + changes + dataHTML
    // A form that the page no longer has cannot show its refusal.
    let isShown = parts.contains("id=\"\(Self.refusalID)\"")
    let top = CardPage.message(message) + (isShown ? "" : CardPage.message(refusal?.reason))
    var page = CardPage.page(heading: overview.userName, top + parts)
    page.keepsForms = true
    return page.response(status: status)
  }

  // MARK: Parts

  private var onceHTML: String {
    var html = ""
    if let secret {
      html += """
        <p>Add this to your authenticator app, then enter the code that it shows:</p>
        <p><code>\(escape(secret.secret))</code></p>
        <p><code>\(escape(secret.address))</code></p>
        \(form("Switch the second factor on", code, do: .confirm))
        """
    }
    if let recoveryCodes {
      html += """
        <p>Keep these recovery codes apart from your passwords. Each signs you in once, in \
        place of the app. They are not shown again.</p>
        <p><code>\(recoveryCodes.map(escape).joined(separator: "<br>"))</code></p>

        """
    }
    if let export {
      html += """
        <p>Your data is ready as a tar archive. The link works once, within a quarter of an hour:</p>
        <p><a href="\(escape(export.url))">Download the archive</a></p>

        """
    }
    return html
  }

  private var dataHTML: String {
    form(
      "Download your data",
      hasPassword ? password : "",
      do: .export,
      note: "Your account, and the records and files of your private databases in every app."
    )
      + form(
        "Delete the account",
        hasPassword ? password : "",
        do: .delete,
        note: "It is disabled at once on every device; its data is deleted after "
          + "\(daysUntilRemoval) days."
      )
  }

  private var devicesHTML: String {
    let rows = overview.devices.map { device in
      button(
        "\(device.device), \(device.container), last used \(Self.day(device.used))",
        "Sign out",
        do: .device,
        device.id
      )
    }
    return "<h2>Devices</h2>\n"
      + (rows.isEmpty ? "<p class=\"quiet\">No device is signed in.</p>\n" : rows.joined())
  }

  private var sessionsHTML: String {
    guard !overview.sessions.isEmpty else { return "" }
    return "<h2>Sign-ins of pages</h2>\n"
      + overview.sessions.map { session in
        let place =
          switch SessionAudience(session.container) {
          case .page: "administration"
          case .app(let container): container
          }
        return button(
          "\(place), until \(Self.day(session.expires))",
          "End",
          do: .session,
          session.id
        )
      }.joined()
  }

  private var factorHTML: String {
    guard secret == nil else { return "" }
    guard overview.hasSecondFactor else {
      return form(
        "Set up a second factor",
        password,
        do: .begin,
        note: "Sign-in requires a code of an authenticator app in addition to the password."
      )
    }
    return form(
      "Create new recovery codes",
      password,
      do: .codes,
      note: "The account has a second factor; \(overview.recoveryCodes) recovery codes are left."
    ) + form("Remove the second factor", password, do: .remove)
  }

  private var changesHTML: String {
    let next = field(
      "new",
      "New password, at least \(shortestPassword) characters",
      type: "password",
      autocomplete: "new-password"
    )
    let address = field(
      "email",
      "E-mail address (others find you by it once it is confirmed)",
      type: "email",
      value: overview.emailAddress ?? "",
      autocomplete: "email",
      isRequired: false
    )
    return form(
      "Change the password",
      password + next,
      do: .password,
      note: "Every other sign-in ends."
    ) + form("Change the e-mail address", address + password, do: .address) + verificationHTML
  }

  private var verificationHTML: String {
    guard sendsMail, let pending = overview.pendingAddress else { return "" }
    return button("\(pending) is not confirmed yet.", "Send the link again", do: .verify, "")
  }

  // MARK: Forms

  private var password: String {
    field("password", "Password", type: "password", autocomplete: "current-password")
  }

  private var code: String { field("code", "Code", autocomplete: "one-time-code") }

  private func field(
    _ name: String,
    _ label: String,
    type: String = "text",
    value: String = "",
    autocomplete: String = "off",
    isRequired: Bool = true
  ) -> String {
    """
    <label>\(escape(label))
    <input name="\(name)" type="\(type)" autocomplete="\(autocomplete)" value="\(escape(value))" \
    \(isRequired ? "required" : "")></label>

    """
  }

  private func form(
    _ title: String,
    _ fields: String,
    do action: OwnPageAction,
    note: String? = nil
  ) -> String {
    """
    <h2>\(escape(title))</h2>
    \(note.map { "<p class=\"quiet\">\(escape($0))</p>\n" } ?? "")\
    <form method="post">
    \(hidden("session", session))\(hidden("do", action.rawValue))\(refused(fields, action))\
    <button>\(escape(title))</button>
    </form>

    """
  }

  private static let refusalID = "refusal"

  /// A form's fields below the reason why it was refused; the browser scrolls to the first one.
  private func refused(_ fields: String, _ action: OwnPageAction) -> String {
    guard let refusal, refusal.form == action else { return fields }
    let first = fields.replacing(
      "<input ",
      with: "<input autofocus aria-describedby=\"\(Self.refusalID)\" ",
      maxReplacements: 1
    )
    return "<p class=\"message\" role=\"alert\" id=\"\(Self.refusalID)\">"
      + "\(escape(refusal.reason))</p>\n\(first)"
  }

  private func button(
    _ text: String,
    _ label: String,
    do action: OwnPageAction,
    _ id: String
  ) -> String {
    """
    <form method="post">
    \(hidden("session", session))\(hidden("do", action.rawValue))\(hidden("id", id))<p>\(escape(text))</p>
    <button class="second">\(escape(label))</button>
    </form>

    """
  }

  private func hidden(_ name: String, _ value: String) -> String {
    "<input name=\"\(name)\" type=\"hidden\" value=\"\(escape(value))\">\n"
  }

  private static func day(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1000)
      .formatted(.iso8601.year().month().day())
  }

  private func escape(_ text: String) -> String { HTMLPage.escape(text) }
}

/// The action of a form of the account page; the value of its field `do`.
enum OwnPageAction: String, CaseIterable {
  case device
  case session
  case password
  case address
  case verify
  case begin
  case confirm
  case codes
  case remove
  case export
  case delete
}
