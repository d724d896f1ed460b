import { defineResource, defineResourceTemplate } from '../../../../src/index.ts';
import { PNG } from './content.ts';

/** Milliseconds between two changes of the watched resource. */
const CHANGES_MS = 1000;

const staticText = defineResource({
  uri: 'test://static-text',
  name: 'Static text',
  description: 'A text that never changes.',
  mimeType: 'text/plain',
  read: () => ({ text: 'This is the content of the static text resource.' }),
});

const staticBinary = defineResource({
  uri: 'test://static-binary',
  name: 'Static image',
  description: 'An image that never changes.',
  mimeType: 'image/png',
  read: () => ({ blob: PNG }),
});

const watched = defineResource({
  uri: 'test://watched-resource',
  name: 'ChangingResources resource',
  description: 'A text that changes every second.',
  mimeType: 'text/plain',
  read: () => ({ text: new Date().toISOString() }),
  watch(changed) {
    const timer = setInterval(changed, CHANGES_MS);
    return () => clearInterval(timer);
  },
});

export const resources = [staticText, staticBinary, watched];

const data = defineResourceTemplate({
  uriTemplate: 'test://template/{id}/data',
  name: 'Data by id',
  description: 'A document for every id.',
  mimeType: 'application/json',
  read: ({ id }) => ({
    text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
});

export const resourceTemplates = [data];
