/** What a variable of the environment could be called for this: `--api-key` becomes `API_KEY`. */
export const toVariableName = (text: string): string =>
  text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^_+(?=[A-Z])/, '')
    // A reference takes no name that begins with a digit.
    .replace(/^(?=\d)/, '_');
