/** An error that the server answered, with its code. */
export class CloudKitError extends Error {
  constructor({ serverErrorCode, reason, redirectURL }) {
    super(reason ?? serverErrorCode)
    this.code = serverErrorCode
    /** The sign-in page, if a user has to sign in first. */
    this.redirectURL = redirectURL
  }
}

/** The items of one account, in the private database of a container. */
export class Items {
  constructor({ url, container, environment, apiToken, webAuthToken }) {
    this.base = `${url}/database/1/${encodeURIComponent(container)}/${environment}/private/`
    this.apiToken = apiToken
    this.webAuthToken = webAuthToken
  }

  async call(endpoint, body) {
    const query = new URLSearchParams({ ckAPIToken: this.apiToken })
    if (this.webAuthToken) query.set('ckWebAuthToken', this.webAuthToken)
    const response = await fetch(`${this.base}${endpoint}?${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const reply = await response.json()
    if (!response.ok) throw new CloudKitError(reply)
    return reply
  }

  /** All items, oldest first; the server gives them in pages. */
  async all() {
    const items = []
    let continuationMarker
    do {
      const page = await this.call('records/query', {
        query: {
          recordType: 'Item',
          sortBy: [{ systemFieldName: 'createdTimestamp', ascending: true }],
        },
        continuationMarker,
      })
      items.push(...page.records)
      continuationMarker = page.continuationMarker
    } while (continuationMarker)
    return items
  }

  async add(title) {
    return this.modify({
      operationType: 'create',
      record: { recordType: 'Item', fields: { title: { value: title } } },
    })
  }

  /** Deletes an item, unless it was changed since it was read: that is the error CONFLICT. */
  async remove({ recordName, recordChangeTag }) {
    return this.modify({ operationType: 'delete', record: { recordName, recordChangeTag } })
  }

  async modify(operation) {
    const { records } = await this.call('records/modify', { operations: [operation] })
    if (records[0].serverErrorCode) throw new CloudKitError(records[0])
    return records[0]
  }
}
