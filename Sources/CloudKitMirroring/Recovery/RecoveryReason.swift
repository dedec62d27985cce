/// Why a value is in the recovery list.
package enum RecoveryReason: CaseIterable, Hashable, Sendable {
  // Values of the server that this device's replace.

  /// A record has a property under its present and its former name, with different values.
  case formerFieldDiffers
  case lostValueSentAgain
  case restoredServerDiffers
  case restoredOnOtherDevice
  case editedBeforeOpening
  case editedInEarlierLaunch
  case editedWhileReplyWasLost
  case sentByOtherCopy

  // Values of this device that the server's replace.

  case editedSinceOtherCopySent
  case replacedWhileReplyWasLost
  case replacedAfterLoss
  case replacedByUnreadFile
  case setBackBeforeSending
  case restoredEntry

  // Objects and links that a deletion discards.

  case editedElsewhereDeletedHere
  case editedHereDeletedElsewhere
  case ownerDeletedElsewhere
  case missingInReading
  case linkRemovedElsewhere
  case linkRemovedHere

  /// The sentence that the recovery list stores and apps show.
  package var text: String {
    switch self {
    case .formerFieldDiffers:
      "The field under the former name has another value, which is taken for newer."
    case .lostValueSentAgain:
      "A value that a restored server had lost was sent again in its place."
    case .restoredServerDiffers:
      "A server that was restored had other values than the last agreed ones."
    case .restoredOnOtherDevice: "Another device restored the object too, with other values."
    case .editedBeforeOpening:
      "It was edited on another device, and here before the store was opened."
    case .editedInEarlierLaunch:
      "It was edited here in an earlier launch, before which the store had this value."
    case .editedWhileReplyWasLost:
      "Another device edited it while the reply to a batch of this device was lost."
    case .sentByOtherCopy:
      "A record of the same name, which another copy of this store may have sent, had it."
    case .editedSinceOtherCopySent:
      "Another copy of this store had sent it, and it was edited since."
    case .replacedWhileReplyWasLost:
      "Another device replaced it while the reply to a batch of this device was lost."
    case .replacedAfterLoss:
      "A zone that was made again, or a server that was restored, replaced it."
    case .replacedByUnreadFile:
      "The file under the present name has another value, which is taken for newer."
    case .setBackBeforeSending:
      "It was set back here after an edit by a former version, and another device edited it."
    case .restoredEntry: "An entry of this list replaced it."
    case .editedElsewhereDeletedHere: "Another device edited an object that was deleted here."
    case .editedHereDeletedElsewhere: "Another device deleted an object that was edited here."
    case .ownerDeletedElsewhere: "Another device deleted the object that this one belonged to."
    case .missingInReading: "The record was missing when the zone was read from the start."
    case .linkRemovedElsewhere:
      "Another device removed a link that was made here too."
    case .linkRemovedHere:
      "This device had removed a link that another one sent again, or has made again since."
    }
  }
}
