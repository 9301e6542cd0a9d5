// SPDX-License-Identifier: Apache-2.0
// The program that holds the precompiled headers of the tests. It is never run.
int main() {}
