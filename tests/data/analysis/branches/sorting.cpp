#include <string>
#include <vector>

std::string plain(std::string value) {
    return value;
}

std::string sort_out(const std::vector<std::string> &values, const std::string &wanted) {
    for (const auto &value : values) {
        if (value == wanted && !value.empty()) {
            return plain(value);
        }
    }
    return "";
}
