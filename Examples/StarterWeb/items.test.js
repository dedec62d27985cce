import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Items } from './items.js'

// `watershed exec` sets these variables.
const { env } = process
const place = {
  url: env.WATERSHED_CLOUDKIT_URL,
  container: env.WATERSHED_CLOUDKIT_CONTAINER,
  environment: env.WATERSHED_CLOUDKIT_ENVIRONMENT,
  apiToken: env.WATERSHED_CLOUDKIT_API_TOKEN,
}
const webAuthToken = env.WATERSHED_CLOUDKIT_WEB_AUTH_TOKEN

test('an item that one page adds is on the other, until it is removed', async () => {
  const phone = new Items({ ...place, webAuthToken })
  const laptop = new Items({ ...place, webAuthToken })
  await phone.add('Buy milk')
  await phone.add('Read')
  const found = await laptop.all()
  assert.deepEqual(found.map((item) => item.fields.title.value), ['Buy milk', 'Read'])
  await laptop.remove(found[0])
  assert.deepEqual((await phone.all()).map((item) => item.fields.title.value), ['Read'])
})

test('without a user token the error names the sign-in page', async () => {
  await assert.rejects(new Items(place).all(), (error) => {
    assert.equal(error.code, 'AUTHENTICATION_REQUIRED')
    assert.ok(error.redirectURL.startsWith(place.url))
    return true
  })
})
