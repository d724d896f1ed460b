// What `postern init` calls the files that others name.

export const CONFIG_FILE = 'postern.yaml';
/** A first tool, in the folder templates of the package. */
export const CATALOG_FILE = 'catalog.mjs';
/** Its test, beside it. */
export const CATALOG_TEST_FILE = 'catalog.test.mjs';
